"""Real faults on a scratch memory, found and mended by the commands of this tool."""
