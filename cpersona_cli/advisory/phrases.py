"""Our own sentences about an advisory, in English and Japanese; the server's words are never translated."""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.advisory.japanese import KINDS
from cpersona_cli.advisory.texts import Language
from cpersona_cli.embedding.kinds import MEANINGS, Kind


def phrase(language: Language, name: str, **fields: object) -> str:
    """The sentence ``name`` with its gaps filled."""
    english, japanese = PHRASES[name]
    return (japanese if language == "ja" else english).format(**fields)


def sentence(language: Language, kind: Kind) -> str:
    """What a kind of outcome stands for."""
    return KINDS[kind][0] if language == "ja" else MEANINGS[kind].sentence


def advice(language: Language, kind: Kind) -> str:
    """What helps against it."""
    return KINDS[kind][1] if language == "ja" else MEANINGS[kind].advice


PHRASES: Mapping[str, tuple[str, str]] = {
    # the labels of rows
    "label.source": ("whose words", "文面の出所"),
    "label.state": ("state at the end", "最終状態"),
    "label.means": ("what it means", "意味"),
    "label.advice": ("what helps", "対処"),
    "label.ours": ("our own call", "本ツールの呼び出し"),
    "label.redacted": ("redacted", "伏せ字"),
    "label.switch": ("switched off", "通知の停止"),
    "label.refused": ("does not start", "起動しません"),
    "label.unfinished": ("not finished", "未完了"),
    "label.carrier": ("where it appears", "通知の場所"),
    "label.caller": ("callers", "呼び出し元"),
    "title.recalls": ("what each recall tells", "リコールごとの通知"),
    "title.unsaid": ("what is not said", "通知されないこと"),
    "mark.broken": ("broken", "故障"),
    "kind.full": ("the whole text", "全文"),
    "kind.short": ("the reminder", "短い再通知"),
    # whose words they are
    "source.server": (
        "the server’s own, {release}, word for word as its next process would send them",
        "サーバー自身の文面（{release}）。次に起動するプロセスが送る内容と一字一句同じです",
    ),
    "source.live": ("; measured now through its own client", "。サーバー自身のクライアントで今計測しました"),
    "source.probing": (
        "; measured now through its own client and the second request that this release adds",
        "。サーバー自身のクライアントと、このリリースが追加で送る要求で今計測しました",
    ),
    "source.replay": ("; replayed, nothing was called", "。再現であり、何も呼び出していません"),
    "source.own": (
        "ours, not the server’s: {why}",
        "本ツールの文面です。サーバーの文面ではありません：{why}",
    ),
    # the table
    "table.recall": ("recall", "リコール"),
    "table.caller": ("caller", "呼び出し元"),
    "table.call": ("embedding call", "埋め込みの呼び出し"),
    "table.state": ("state after", "その後の状態"),
    "table.told": ("the agent is told", "エージェントへの通知"),
    "caller.none": ("no key", "キーなし"),
    "call.ok": ("succeeds", "成功"),
    "call.failed": ("fails", "失敗"),
    "call.overlooked": ("fails, taken for a success", "失敗（成功と見なされます）"),
    "call.none": ("none", "なし"),
    "call.check": ("fails in check_health", "check_health での失敗"),
    "call.escaped": ("ends the recall with an error", "リコールがエラーで終わります"),
    "told.nothing": ("nothing", "なし"),
    "told.full": ("the whole text, {size}", "全文、{size}"),
    "told.short": ("the reminder, {size}", "短い再通知、{size}"),
    "told.error": ("an error in place of memories", "記憶の代わりにエラー"),
    "size": ("{count:,} characters", "{count:,} 文字"),
    # the panel
    "panel.first": ("recall {number}, {told}", "リコール {number}：{told}"),
    "panel.facts": (
        "severity {severity}; scope {scope}; reason: {reason}",
        "severity {severity}、scope {scope}、reason：{reason}",
    ),
    "panel.silent": (
        "None of these recalls tells the agent anything.",
        "いずれのリコールでも、エージェントには何も通知されません。",
    ),
    "carrier": (
        "in the field `advisory` of the answer to the next recall, best effort: the server cannot speak first",
        "次のリコールの応答の `advisory` 欄に入ります。サーバーから先に知らせることはできません",
    ),
    "redacted": (
        "this text differs from the server’s in {count} characters that are secret; --raw shows them",
        "秘密の値 {count} 文字を伏せたため、サーバーの文面と異なります。--raw で表示できます",
    ),
    "ours.ok": ("{sentence}, a moment later", "直後の呼び出し：{sentence}"),
    "ours.differs": (
        "{sentence}; the server’s own call ended otherwise, so the endpoint wavers, or the two call it differently",
        "{sentence}。サーバー自身の呼び出しとは結果が異なります。エンドポイントが不安定か、呼び出し方が異なります",
    ),
    "healthy": ("the endpoint answered the server", "エンドポイントはサーバーに応答しました"),
    "hint": (
        "supported and not broken: search by words alone, until a mode and a URL are set",
        "サポートされている構成で、故障ではありません。モードと URL を設定するまで、検索は語句の一致だけです",
    ),
    "switch.off": (
        "{setting}={text}: whatever happens, the agent is told nothing, and recall is no better for it",
        "{setting}={text}：何が起きてもエージェントには通知されません。リコールが改善するわけでもありません",
    ),
    "switch.no-effect": (
        "{setting}={text} does not switch the notice off in this release; false does",
        "{setting}={text} では、このリリースの通知は止まりません。止めるには false と書きます",
    ),
    "switch.taken": (
        "{setting}={text} switches the notice off in this release, which takes nothing but true for on",
        "{setting}={text} と書くと、このリリースでは通知が止まります。true 以外はすべて「オフ」と見なされるためです",
    ),
    "keys.unknown": (
        "this release knows no session_key, so all callers count as one",
        "このリリースには session_key がないため、すべての呼び出し元は一つと見なされます",
    ),
    # repairs
    "repair.silent": (
        "rebuild the vectors, or see first what is wrong with them",
        "ベクトルを作り直すか、まず状態を確認してください",
    ),
    "repair.probe": ("see what answers at the endpoint", "エンドポイントで何が応答しているかを確認してください"),
    # why the stored vectors were not looked at
    "why.none": ("no database is known", "データベースが分かりません"),
    "why.absent": ("there is no database yet", "データベースがまだありません"),
    "why.unreadable": ("the database cannot be read: {state}", "データベースを読み取れません：{state}"),
    # what the server does not say
    "unsaid.width": (
        (
            "the stored vectors have {stored} dimensions and the endpoint makes {live}: no memory is found by meaning, "
            "and a server that is started now takes this for healthy"
        ),
        (
            "保存済みのベクトルは {stored} 次元、エンドポイントは {live} 次元です。意味による検索では記憶が一つも"
            "見つかりませんが、これから起動するサーバーは正常と見なします"
        ),
    ),
    "unsaid.mixed": (
        "{lost} of {rows} memories and episodes have vectors that do not go with the endpoint",
        "記憶とエピソード {rows} 件のうち {lost} 件のベクトルが、エンドポイントと合っていません",
    ),
    "unsaid.swapped": (
        "the stored vectors are another model’s, of the same width: searches by meaning return anything",
        "保存済みのベクトルは、次元数が同じ別のモデルのものです。意味による検索の結果は当てになりません",
    ),
    "unsaid.drifted": (
        "the stored vectors differ a little from what the endpoint makes now of the same texts",
        "保存済みのベクトルは、同じ文からエンドポイントが今作るベクトルと少し異なります",
    ),
    "unsaid.unreadable": (
        "the stored vectors cannot be read as vectors of any one width",
        "保存済みのベクトルは、一つの次元数のベクトルとして読み取れません",
    ),
    "unsaid.missing": (
        "{missing} of {rows} memories and episodes have no vector and are not found by meaning",
        "記憶とエピソード {rows} 件のうち {missing} 件にはベクトルがなく、意味による検索では見つかりません",
    ),
    "unsaid.damaged": (
        "{count} stored vectors are all zeros or hold no finite numbers",
        "保存済みのベクトルのうち {count} 件は、すべてゼロか、有限でない数を含んでいます",
    ),
    "unsaid.meaningless": (
        "the endpoint answers, and its vectors are worth nothing: {sentence}",
        "エンドポイントは応答しますが、そのベクトルに価値がありません：{sentence}",
    ),
    "unsaid.overlooked": (
        "the call fails, and this release takes it for a success, because its second request gets an answer",
        "呼び出しは失敗していますが、このリリースは 2 回目の要求に応答があるため成功と見なします",
    ),
    "unsaid.escaped": (
        "the call ends with {error}, which the server does not catch: the recall fails, and no advisory comes with it",
        "呼び出しは {error} で終わり、サーバーはこれを処理しません。リコール自体が失敗し、通知も付きません",
    ),
    "unsaid.first": (
        (
            "the first failed recall: it finds memories by shared words only, and the agent is not told; the second in "
            "a row is announced"
        ),
        (
            "1 回目の失敗：そのリコールは語句の一致だけで検索しますが、エージェントには通知されません。"
            "2 回続けて失敗すると通知されます"
        ),
    ),
    "unsaid.stores": (
        "memories that are stored during an outage: they get no vector, and storing them counts for nothing here",
        "障害中に保存された記憶：ベクトルは付きませんが、保存時の失敗は数えられません",
    ),
    "unsaid.cached": (
        (
            "a question asked again within some minutes: it is answered from the cache and shows neither failure nor "
            "recovery"
        ),
        "数分以内に繰り返された質問：キャッシュから答えるため、失敗も回復も現れません",
    ),
    "unsaid.remote": (
        "search is remote: an answer of the embedding server’s /search counts as success, which was not tried here",
        (
            "検索がリモートに設定されています。埋め込みサーバーの /search の応答は成功と見なされますが、"
            "ここでは試していません"
        ),
    ),
    "unsaid.unknown": (
        "whether the stored vectors go with the endpoint: that could not be found out ({why})",
        "保存済みのベクトルがエンドポイントと合っているか：確認できませんでした（{why}）",
    ),
    "unsaid.not-asked": (
        "whether the stored vectors go with the endpoint: a replay calls nothing",
        "保存済みのベクトルがエンドポイントと合っているか：再現では何も呼び出しません",
    ),
}
