"""What our own advisories say, in English and Japanese.

Each full text has six parts: what is wrong with the evidence, what it costs, what to look at, what to do, one plain
sentence for the user, and how to switch the notice off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cpersona_cli.advisory.model import IMPERATIVE

Language = Literal["en", "ja"]
Sort = Literal["fault", "config", "hint"]


def runbook(sort: Sort, evidence: str, *, full: bool, language: Language = "en") -> str:
    """The text for the agent."""
    shown = evidence or NO_DETAIL[language]
    if not full:
        return SHORT[language][sort].replace("{evidence}", shown)
    parts = "\n\n".join(FULL[language][sort]).replace("{evidence}", shown)
    return f"{IMPERATIVE} {parts}"


NO_DETAIL: Mapping[Language, str] = {"en": "no reason was recorded", "ja": "理由は記録されていません"}

REASONS: Mapping[Language, Mapping[Sort, str]] = {
    "en": {
        "fault": "the embedding endpoint does not answer; recall finds memories only by shared words",
        "config": "the embedding endpoint is never called, because of a setting; recall finds memories only by "
        "shared words",
        "hint": "no embedding backend is configured; recall finds memories only by shared words",
    },
    "ja": {
        "fault": "埋め込みエンドポイントが応答しないため、記憶は共通する語句でしか見つかりません",
        "config": "設定の誤りにより埋め込みエンドポイントが呼び出されないため、記憶は共通する語句でしか見つかりません",
        "hint": "埋め込みバックエンドが設定されていないため、記憶は共通する語句でしか見つかりません",
    },
}

SHORT: Mapping[Language, Mapping[Sort, str]] = {
    "en": {
        "fault": "Reminder: the embedding endpoint still does not answer ({evidence}); memories are found only by "
        "shared words.",
        "config": "Reminder: the embedding endpoint is still not called ({evidence}); memories are found only by "
        "shared words.",
        "hint": "Reminder: no embedding backend is configured; memories are found only by shared words.",
    },
    "ja": {
        "fault": "再通知：埋め込みエンドポイントはまだ応答していません（{evidence}）。"
        "記憶は共通する語句でしか見つかりません。",
        "config": "再通知：埋め込みエンドポイントはまだ呼び出されていません（{evidence}）。"
        "記憶は共通する語句でしか見つかりません。",
        "hint": "再通知：埋め込みバックエンドが設定されていません。記憶は共通する語句でしか見つかりません。",
    },
}

_IMPACT_EN = (
    "What it costs: a recall still returns memories that share words with the question. Memories in other words, and "
    "old ones, are missing, and the answer does not show it. New memories are stored without a vector."
)
_IMPACT_JA = (
    "影響：質問と共通する語句を含む記憶は、これまでどおり返されます。ただし、別の言い回しの記憶や古い記憶は"
    "抜け落ち、そのことは回答からは分かりません。新しい記憶はベクトルなしで保存されます。"
)
_OFF_EN = "To switch it off: CPERSONA_DEGRADED_ADVISORY=false hides this notice. It repairs nothing."
_OFF_JA = (
    "通知を止めるには：CPERSONA_DEGRADED_ADVISORY=false を設定すると、この通知は出なくなります。"
    "問題そのものは直りません。"
)

FULL: Mapping[Language, Mapping[Sort, tuple[str, ...]]] = {
    "en": {
        "fault": (
            (
                "CPersona cannot search its memories by meaning: the embedding endpoint does not answer as it should. "
                "Measured: {evidence}."
            ),
            _IMPACT_EN,
            (
                "What to look at: (1) `cpersona-cli probe` names what answers at the address; (2) is the embedding "
                "server running? (3) are host, port and path of the address right? (4) is its model loaded?"
            ),
            (
                "What to do: start the embedding server, or correct the address and restart CPersona. The first call "
                "that succeeds ends this state. Then fill in the vectors that were missed: `cpersona-cli reembed "
                "--only missing`."
            ),
            (
                "For the user: “At the moment I can look up my notes only by their exact words, so I may overlook "
                "something I know.”"
            ),
            _OFF_EN,
        ),
        "config": (
            (
                "CPersona cannot search its memories by meaning: a setting keeps it from calling its embedding "
                "endpoint. Measured: {evidence}."
            ),
            _IMPACT_EN,
            (
                "What to look at: `cpersona-cli doctor` names the setting, the file and the line. The embedding server "
                "itself has no part in this."
            ),
            (
                "What to do: set CPERSONA_EMBEDDING_MODE to http with CPERSONA_EMBEDDING_URL, or to api with "
                "CPERSONA_EMBEDDING_API_KEY, or to none if search by words is enough; then restart CPersona."
            ),
            "For the user: “My memory search is set up wrongly, so I can look up my notes only by their exact words.”",
            _OFF_EN,
        ),
        "hint": (
            (
                "CPersona runs without an embedding backend, so it cannot search its memories by meaning. Measured: "
                "{evidence}. This is supported, and not an outage."
            ),
            _IMPACT_EN,
            (
                "What to look at: was this chosen? `cpersona-cli doctor` shows which settings are in force and where "
                "they stand."
            ),
            (
                "What to do, if it was not: start an embedding server, set CPERSONA_EMBEDDING_MODE=http and "
                "CPERSONA_EMBEDDING_URL, and restart CPersona. Then `cpersona-cli reembed --only missing`."
            ),
            (
                "For the user: “I look up my notes by their exact words. With an embedding service I could also find "
                "them by meaning.”"
            ),
            _OFF_EN,
        ),
    },
    "ja": {
        "fault": (
            (
                "CPersona は現在、意味による記憶の検索ができません。埋め込みエンドポイントが正しく応答していません。"
                "計測結果：{evidence}"
            ),
            _IMPACT_JA,
            (
                "確認すること：(1) `cpersona-cli probe` で、そのアドレスで何が応答しているかを確かめてください。"
                "(2) 埋め込みサーバーは起動していますか。(3) アドレスのホスト、ポート、パスは正しいですか。"
                "(4) モデルは読み込まれていますか。"
            ),
            (
                "対処：埋め込みサーバーを起動するか、アドレスを修正して CPersona を再起動してください。"
                "呼び出しが一度成功すれば、この状態は解消します。その後、欠けたベクトルを "
                "`cpersona-cli reembed --only missing` で補ってください。"
            ),
            "利用者への一言：「今は記憶を語句の一致でしか探せないため、覚えていることを見落とすかもしれません。」",
            _OFF_JA,
        ),
        "config": (
            (
                "CPersona は現在、意味による記憶の検索ができません。設定の誤りにより、埋め込みエンドポイントが"
                "呼び出されていません。計測結果：{evidence}"
            ),
            _IMPACT_JA,
            (
                "確認すること：`cpersona-cli doctor` を実行すると、該当する設定とそのファイル、行が分かります。"
                "埋め込みサーバー自体を調べる必要はありません。"
            ),
            (
                "対処：CPERSONA_EMBEDDING_MODE を http（CPERSONA_EMBEDDING_URL も必要）、api"
                "（CPERSONA_EMBEDDING_API_KEY も必要）、または語句の検索だけでよければ none に設定し、"
                "CPersona を再起動してください。"
            ),
            "利用者への一言：「記憶の検索の設定に誤りがあるため、今は語句の一致でしか探せません。」",
            _OFF_JA,
        ),
        "hint": (
            (
                "CPersona は埋め込みバックエンドなしで動作しているため、意味による記憶の検索ができません。"
                "計測結果：{evidence}。これはサポートされている構成で、障害ではありません。"
            ),
            _IMPACT_JA,
            "確認すること：意図した構成でしょうか。`cpersona-cli doctor` で、有効な設定とその場所を確認できます。",
            (
                "意図していない場合の対処：埋め込みサーバーを起動し、CPERSONA_EMBEDDING_MODE=http と "
                "CPERSONA_EMBEDDING_URL を設定して、CPersona を再起動してください。その後、"
                "`cpersona-cli reembed --only missing` を実行してください。"
            ),
            (
                "利用者への一言：「今は記憶を語句の一致で探しています。埋め込みサービスをつなぐと、"
                "意味でも探せるようになります。」"
            ),
            _OFF_JA,
        ),
    },
}
