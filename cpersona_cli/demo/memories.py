"""What the demo remembers, and questions that share no word with the memory that answers them."""

from __future__ import annotations

AGENT = "demo"

MEMORIES = (
    "The old laptop has a broken screen.",
    "Rent is paid to the landlord on the first of the month.",
    "Our team meets on Mondays at ten by video.",
    "Mira is allergic to nuts; order another cake.",
    "The dentist moved the appointment to Friday.",
    "Kenji plays the violin in an orchestra.",
    "The train to Berlin leaves from platform seven.",
    "The garden needs water twice a week in July.",
    "The soup needs more salt and a little pepper.",
    "The build runs on Linux and takes eleven minutes.",
    "Passwords are kept in a vault, never in a file.",
    "Nobody deploys on the day before a holiday.",
)

#: A question and the memory that answers it: only a model that knows what words mean can bring them together.
QUESTIONS = (
    ("Which notebook computer needs its display repaired?", MEMORIES[0]),
    ("Whose peanut allergies should desserts avoid?", MEMORIES[3]),
    ("At which railway station do passengers depart for Germany?", MEMORIES[6]),
    ("How much rain do plants and flowers require during summer?", MEMORIES[7]),
)

#: Conversations of long ago, as an importer brings them in: what was said, and how many days before the memories.
CONVERSATIONS = (
    ("We compared three backup tools and chose the one that verifies what it wrote.", 300),
    ("The first plan for the flat: two rooms, a balcony, and no more than twenty minutes to work.", 240),
    ("Notes on learning the violin: ten minutes each morning, scales first.", 180),
)
