"""All our words in Japanese: what stands here has its English counterpart elsewhere, under the same name.

The server's own words are never translated, nor are names, commands, settings and what a setting holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cpersona_cli.embedding.kinds import Kind

if TYPE_CHECKING:
    from cpersona_cli.advisory.texts import Sort

#: The sentences of ``phrases``.
PHRASES: Mapping[str, str] = {
    # the labels of rows
    "label.source": "文面の出所",
    "label.state": "最終状態",
    "label.means": "意味",
    "label.advice": "対処",
    "label.ours": "本ツールの呼び出し",
    "label.redacted": "伏せ字",
    "label.switch": "通知の停止",
    "label.refused": "起動しません",
    "label.unfinished": "未完了",
    "label.carrier": "通知の場所",
    "label.caller": "呼び出し元",
    "title.target": "{label}：モード {mode}、{address}、{transport}",
    "title.recalls": "リコールごとの通知",
    "title.unsaid": "通知されないこと",
    "mark.broken": "故障",
    "kind.full": "全文",
    "kind.short": "短い再通知",
    # whose words they are
    "source.server": "サーバー自身の文面（{release}）。次に起動するプロセスが送る内容と一字一句同じです",
    "source.live": "。サーバー自身のクライアントで今計測しました",
    "source.probing": "。サーバー自身のクライアントと、このリリースが追加で送る要求で今計測しました",
    "source.replay": "。再現であり、何も呼び出していません",
    "source.own": "本ツールの文面です。サーバーの文面ではありません：{why}",
    # the table
    "table.recall": "リコール",
    "table.caller": "呼び出し元",
    "table.call": "埋め込みの呼び出し",
    "table.state": "その後の状態",
    "table.told": "エージェントへの通知",
    "caller.none": "キーなし",
    "call.ok": "成功",
    "call.failed": "失敗",
    "call.overlooked": "失敗（成功と見なされます）",
    "call.none": "なし",
    "call.check": "check_health での失敗",
    "call.escaped": "リコールがエラーで終わります",
    "told.nothing": "なし",
    "told.full": "全文、{size}",
    "told.short": "短い再通知、{size}",
    "told.error": "記憶の代わりにエラー",
    "size": "{count:,} 文字",
    # the panel
    "panel.first": "リコール {number}：{told}",
    "panel.facts": "severity {severity}、scope {scope}、reason：{reason}",
    "panel.silent": "いずれのリコールでも、エージェントには何も通知されません。",
    "carrier": "次のリコールの応答の `advisory` 欄に入ります。サーバーから先に知らせることはできません",
    "redacted": "秘密の値 {count} 文字を伏せたため、サーバーの文面と異なります。--raw で表示できます",
    "ours.ok": "直後の呼び出し：{sentence}",
    "ours.differs": (
        "{sentence}。サーバー自身の呼び出しとは結果が異なります。エンドポイントが不安定か、呼び出し方が異なります"
    ),
    "quoted": "{sentence}：「{message}」",
    "healthy": "エンドポイントはサーバーに応答しました",
    "hint": "サポートされている構成で、故障ではありません。モードと URL を設定するまで、検索は語句の一致だけです",
    "switch.off": "{setting}={text}：何が起きてもエージェントには通知されません。リコールが改善するわけでもありません",
    "switch.no-effect": "{setting}={text} では、このリリースの通知は止まりません。止めるには false と書きます",
    "switch.taken": (
        "{setting}={text} と書くと、このリリースでは通知が止まります。true 以外はすべて「オフ」と見なされるためです"
    ),
    "keys.unknown": "このリリースには session_key がないため、すべての呼び出し元は一つと見なされます",
    # the findings
    "found.no-start": "起動時にエラーで終了します：{error}",
    "found.leaks": "サーバーの文面に、キー、パスワード、またはクエリの {count} 文字が含まれています",
    "found.fault": "{evidence}（{means}）",
    "found.no-reason": "理由は記録されていません",
    "found.between": "。",
    "found.switched-off": "{switch}。{means}",
    "found.no-meaning": "意味による検索が働いていません",
    "found.hint": "モードが none です。プロセスごとに、最初のリコールでヒントが通知されます",
    # repairs; those that another part of this tool knows exactly are told in general, with its lines to copy
    "repair.no-start": "エラーが示すものを修正してください",
    "repair.leaks": "その値を含む設定を修正し、キーやパスワードを変更してください",
    "repair.hint": (
        "{mode}=http と CPERSONA_EMBEDDING_URL を設定してください。{switch}=false とすると、ヒントが出なくなるだけです"
    ),
    "repair.remove": "{place} から {name} を削除し、サーバーを再起動してください",
    "repair.edit": "{advice}。{place} に次のように書き、サーバーを再起動してください",
    "repair.setting": "{advice}（{name}、{place}）",
    "repair.general": "{advice}",
    "repair.silent": "ベクトルの状態を確認してから、作り直してください",
    "repair.look": "保存済みのベクトルの状態を確認してください",
    "repair.probe": "エンドポイントで何が応答しているかを確認してください",
    "advice.no-key": "http モードの CPersona はキーを送らないため、埋め込みサーバーの認証を無効にしてください",
    # why the server was not asked, or not to the end
    "absent.start": "{python} を起動できませんでした（{why}）",
    "absent.nul": "{python} を起動できませんでした（変数に NUL 文字があります）",
    "absent.release": (
        "このリリースの CPersona は、埋め込みエンドポイントについてエージェントに何も通知しません"
        "（2.4.33 以降は通知します）"
    ),
    "absent.module": "サーバーの Python が {module} を読み込めません",
    "absent.container": "サーバーはコンテナの中で動いています",
    "absent.wsl": "サーバーは WSL の中で動いています",
    "absent.install": "サーバーのインストール先を特定できません。`cpersona-cli doctor` で確認できます",
    "absent.python": "サーバーの Python を実行できません。`cpersona-cli doctor` で確認できます",
    "absent.other": "{python} はこのコンピューターの Python ではありません",
    "refused.settings": "次の設定ではサーバーは起動しません：{settings}。`cpersona-cli doctor` で詳細を確認できます",
    "unfinished.time": (
        "リコール {count} 回のうち {done} 回が終わったところで制限時間になりました。--timeout で延ばせます"
    ),
    "unfinished.ended": (
        "リコール {count} 回のうち {done} 回が終わったところで、サーバーの Python が終了しました：{said}"
    ),
    "unfinished.silent": "出力はありません",
    "unfinished.closed": "実行が打ち切られました",
    # why there is no verdict
    "unsettled.of": "{label}：{why}",
    "unsettled.look": "一部の登録やデータベースを時間内に調べられませんでした",
    "unsettled.far": "サーバーは別の場所で動いています。そこでこのコマンドを実行してください",
    "unsettled.late": "時間内に問い合わせられませんでした",
    "unsettled.program": "サーバーが起動するかどうかを確認できませんでした。プログラムが見つからないか、実行できません",
    "unsettled.failed": "調べられませんでした",
    "unsettled.network": "サーバーはこのコマンドとは別のネットワークにあります。ここからの結果：{sentence}",
    "unsettled.none": "CPersona の登録が見つかりません。--env を付けると、このプロセスの環境変数を使います",
    "unsettled.inactive": "登録は {count} 件ありますが、ここでサーバーを起動するクライアントはありません",
    "skipped": "サーバーに問い合わせていません",
    "note.override": "この再現では、{name} を {value} に置き換えました",
    "note.tool": "本ツールの設定に、読まれない項目があります。`cpersona-cli doctor` で確認できます",
    # the first line and the last
    "headline": "登録 {targets} 件、リコール {count} 回",
    "summary": "{verdict}。{counts}。",
    "summary.between": "、",
    "verdict.several": "登録 {targets} 件",
    "verdict.refused": "サーバーが起動しません",
    "verdict.none": "表示できるリコールがありません",
    "verdict.told": "{state}。リコール {number} からエージェントに通知されます{replayed}",
    "verdict.broken": "意味による検索が壊れていますが、エージェントには何も通知されません{replayed}",
    "verdict.quiet": "{state}。エージェントには何も通知されません{replayed}",
    "verdict.replayed": "（再現）",
    # the command line
    "raw.asks": (
        "サーバーの文面には、キーやパスワードが含まれることがあります。そのまま表示するなら yes と入力してください："
    ),
    "usage.raw": "--raw ではキーやパスワードが表示されることがあります。よければ --yes を付けてください",
    "usage.yes": "--yes は --raw と一緒に使います。ほかに確認することはありません",
    "usage.transport": "--transport には {known} を指定してください（{word} は使えません）",
    "usage.or": " か ",
    "usage.timeout": "--timeout には 0 より大きく {most} 以下の秒数を指定してください（{given} は使えません）",
    "usage.live": "--live は計測するため、{option} と一緒には使えません",
    "usage.counted": "リコールの回数は --sequence で決まるため、--recalls と一緒には使えません",
    "usage.recalls": "--recalls には 1 から {most} までの数を指定してください（{given} は使えません）",
    "usage.words": "--sequence の語は {most} 個までです（{given} 個あります）",
    "usage.none": "--sequence：サーバーのモードは起動中に変わらないため、none をほかの語と並べることはできません",
    "usage.key": "セッションキーは {most} 文字までです（{given} 文字のものがあります）",
    "usage.meant": "{option} に {word} は使えません。{near} のことでしょうか",
    "usage.kind": "{option} に {word} は使えません。使える語：none, {known}",
    # why the stored vectors were not looked at
    "why.none": "データベースが分かりません",
    "why.absent": "データベースがまだありません",
    "why.unreadable": "データベースを読み取れません（`{state}`）",
    "why.store": "データベースを読み取れません",
    "why.call": "{sentence}",
    "why.model": "次元数は合っていますが、モデルは比べられませんでした",
    # what the server does not say
    "unsaid.width": (
        "保存済みのベクトルは {stored} 次元、エンドポイントは {live} 次元です。意味による検索では記憶が一つも"
        "見つかりませんが、これから起動するサーバーは正常と見なします"
    ),
    "unsaid.mixed": "記憶とエピソード {rows} 件のうち {lost} 件のベクトルが、エンドポイントと合っていません",
    "unsaid.swapped": "保存済みのベクトルは、次元数が同じ別のモデルのものです。意味による検索の結果は当てになりません",
    "unsaid.drifted": "保存済みのベクトルは、同じ文からエンドポイントが今作るベクトルと少し異なります",
    "unsaid.unreadable": "保存済みのベクトルは、一つの次元数のベクトルとして読み取れません",
    "unsaid.missing": (
        "記憶とエピソード {rows} 件のうち {missing} 件にはベクトルがなく、意味による検索では見つかりません"
    ),
    "unsaid.damaged": "保存済みのベクトルのうち {count} 件は、すべてゼロか、有限でない数を含んでいます",
    "unsaid.meaningless": "エンドポイントは応答しますが、そのベクトルは使いものになりません：{sentence}",
    "unsaid.overlooked": "呼び出しは失敗していますが、このリリースは 2 回目の要求に応答があるため成功と見なします",
    "unsaid.escaped": (
        "呼び出しは {error} で終わり、サーバーはこれを処理しません。リコール自体が失敗し、通知も付きません"
    ),
    "unsaid.first": (
        "1 回目の失敗：そのリコールは語句の一致だけで検索しますが、エージェントには通知されません。"
        "2 回続けて失敗すると通知されます"
    ),
    "unsaid.stores": "障害中に保存された記憶：ベクトルは付きませんが、保存時の失敗は数えられません",
    "unsaid.cached": "数分以内に繰り返された質問：キャッシュから答えるため、失敗も回復も現れません",
    "unsaid.remote": (
        "検索がリモートに設定されています。埋め込みサーバーの /search の応答は成功と見なされますが、"
        "ここでは試していません"
    ),
    "unsaid.unknown": "保存済みのベクトルがエンドポイントと合っているか：確認できませんでした（{why}）",
    "unsaid.not-asked": "保存済みのベクトルがエンドポイントと合っているか：再現では何も呼び出しません",
}

#: (what happened, what helps)
KINDS: Mapping[Kind, tuple[str, str]] = {
    Kind.OK: ("使えるベクトルが返りました", "何もする必要はありません"),
    Kind.DISABLED: (
        "埋め込みバックエンドが設定されていません",
        "意味で検索するには、モードと URL を設定してください",
    ),
    Kind.CONFIG_MODE: ("サーバーの知らないモードです", "none、http、api のいずれかを小文字で指定してください"),
    Kind.CONFIG_URL: ("このままの URL では呼び出せません", "URL を修正してください"),
    Kind.CONFIG_CREDENTIAL: ("このままのキーは送信できません", "キーを修正してください"),
    Kind.CONFIG_CLIENT: ("この設定ではクライアントを作れません", "示された設定を修正してください"),
    Kind.INPUT_INVALID: ("送信できない文が含まれています", "その文を除くか、修正してください"),
    Kind.DNS: ("ホスト名が見つかりません", "ホスト名を修正してください"),
    Kind.RESOLVER: ("名前解決サービスが応答しません", "ネットワークの名前解決を確認してください"),
    Kind.REFUSED: (
        "このアドレスで待ち受けているプログラムがありません",
        "埋め込みサーバーを起動してください",
    ),
    Kind.UNROUTABLE: ("このアドレスには到達できません", "ネットワークとアドレスを確認してください"),
    Kind.CONNECT_TIMEOUT: (
        "このアドレスからは応答がありません",
        "ホスト、ポート、ファイアウォールを確認してください",
    ),
    Kind.TLS: ("安全な接続を確立できません", "https か http か、また証明書を確認してください"),
    Kind.PROXY: (
        "途中のプロキシで失敗しています",
        "ホストを NO_PROXY に加えるか、プロキシを修復してください",
    ),
    Kind.TIMEOUT: ("時間内に応答が完了しませんでした", "しばらく待つか、制限時間を延ばしてください"),
    Kind.DISCONNECTED: ("応答の前に接続が切れました", "サーバーのログを確認してください"),
    Kind.NOT_HTTP: ("応答が正しい HTTP ではありません", "ポートを確認してください"),
    Kind.REDIRECTED: ("サーバーが別のアドレスを示しています", "示されたアドレスを設定してください"),
    Kind.AUTH: ("サーバーが認証情報を拒否しています", "キー、またはその権限を修正してください"),
    Kind.ROUTE_NOT_FOUND: ("サーバーにこのパスはありません", "URL のパスを修正してください"),
    Kind.MODEL_NOT_FOUND: (
        "サーバーにこのモデルがありません",
        "モデル名を修正するか、モデルを取得してください",
    ),
    Kind.NOT_AN_EMBEDDING_MODEL: ("埋め込み用のモデルではありません", "埋め込み用のモデルを使ってください"),
    Kind.NO_MODEL_LOADED: ("埋め込み用のモデルが読み込まれていません", "モデルを読み込んでください"),
    Kind.EMBEDDINGS_DISABLED: (
        "サーバーの埋め込み機能が無効です",
        "埋め込みを有効にしてサーバーを起動してください",
    ),
    Kind.POOLING_NONE: (
        "サーバーがベクトルを一つにまとめていません",
        "プーリングを指定してサーバーを起動してください",
    ),
    Kind.WRONG_CONTRACT: ("サーバーの形式が異なります", "合うモードと URL を設定してください"),
    Kind.NO_BATCHING: (
        "サーバーが文の一覧を受け付けません",
        "一覧を受け付けるサーバーを使ってください",
    ),
    Kind.BATCH_TOO_LARGE: ("一度に送る文が多すぎます", "一度に送る数を減らしてください"),
    Kind.INPUT_TOO_LARGE: ("文がサーバーの上限より長いです", "サーバーの上限を上げてください"),
    Kind.NAN_FOR_INPUT: ("一部の文でモデルが数値を返しません", "その文を除いてください"),
    Kind.THROTTLED: ("サーバーが間隔を空けるよう求めています", "指示された時間だけ待ってください"),
    Kind.QUOTA: ("アカウントの利用枠を使い切りました", "契約と支払いを確認してください"),
    Kind.LOADING: ("サーバーの準備がまだできていません", "モデルの読み込みが終わるまで待ってください"),
    Kind.UPSTREAM_FAILED: (
        "中継サーバーの接続先で失敗しています",
        "中継サーバーのログを確認してください",
    ),
    Kind.REJECTED: ("サーバーが要求を拒否しました", "サーバーの説明を読んでください"),
    Kind.SERVER_ERROR: ("サーバーで失敗しました", "サーバーのログを確認してください"),
    Kind.TOO_LARGE: ("応答が埋め込みとしては大きすぎます", "この URL で何が応答しているかを確認してください"),
    Kind.NOT_JSON: ("応答が JSON ではありません", "この URL で何が応答しているかを確認してください"),
    Kind.ERROR_IN_SUCCESS: ("成功の応答にエラーが入っています", "サーバーの説明を読んでください"),
    Kind.WRONG_SHAPE: ("応答の形がこのモードのものと異なります", "合うモードと URL を設定してください"),
    Kind.BASE64: (
        "ベクトルが base64 の文字列で届き、サーバーはこれを受け付けません",
        "base64 を無効にしてください",
    ),
    Kind.EMPTY: ("応答にベクトルがありません", "サーバーのログを確認してください"),
    Kind.NULL_VECTOR: ("ベクトルが null です", "埋め込み用のモデルを使ってください"),
    Kind.COUNT_MISMATCH: (
        "文の数とベクトルの数が合いません",
        "一度に送る数を減らすか、別のサーバーを使ってください",
    ),
    Kind.BAD_INDEX: ("どのベクトルがどの文のものか分かりません", "文を一つずつ送ってください"),
    Kind.RAGGED: ("一つの応答の中でベクトルの次元数が異なります", "サーバーのログを確認してください"),
    Kind.BAD_VALUES: ("ベクトルに有限の数でない値があります", "サーバーのログを確認してください"),
    Kind.ZERO_VECTOR: ("ベクトルがすべてゼロです", "別のモデルかサーバーを使ってください"),
    Kind.CONSTANT_VECTOR: ("異なる文に同じベクトルが返ります", "別のモデルかサーバーを使ってください"),
    Kind.NOT_NORMALIZED: ("ベクトルの長さが 1 ではありません", "サーバーの正規化を有効にしてください"),
    Kind.UNSTABLE: ("同じ文に異なる答えが返ります", "サーバーを確認してください"),
    Kind.TRUNCATING: ("長い文が断りなく切り詰められます", "サーバーの上限を上げてください"),
    Kind.WEAK_SEPARATION: ("関係のある文とない文の区別がつきません", "別のモデルを使ってください"),
    Kind.DIMENSION_MISMATCH: ("保存済みのベクトルとは次元数が異なります", "ベクトルを作り直してください"),
    Kind.MODEL_MISMATCH: ("保存済みのベクトルは別のモデルのものです", "ベクトルを作り直してください"),
    Kind.INTERNAL: ("予期しないエラーです", "ご報告ください"),
}

#: What our own advisories say, as in ``texts``.
IMPERATIVE = "**利用者に伝えてください：**"

REASONS: Mapping[Sort, str] = {
    "fault": "埋め込みエンドポイントが応答しないため、記憶は共通する語句でしか見つかりません",
    "config": "設定の誤りにより埋め込みエンドポイントが呼び出されないため、記憶は共通する語句でしか見つかりません",
    "hint": "埋め込みバックエンドが設定されていないため、記憶は共通する語句でしか見つかりません",
}

SHORT: Mapping[Sort, str] = {
    "fault": "再通知：埋め込みエンドポイントはまだ応答していません（{evidence}）。"
    "記憶は共通する語句でしか見つかりません。",
    "config": "再通知：埋め込みエンドポイントはまだ呼び出されていません（{evidence}）。"
    "記憶は共通する語句でしか見つかりません。",
    "hint": "再通知：埋め込みバックエンドが設定されていません。記憶は共通する語句でしか見つかりません。",
}

_IMPACT = (
    "影響：質問と共通する語句を含む記憶は、これまでどおり返されます。ただし、別の言い回しの記憶や古い記憶は"
    "抜け落ち、そのことは回答からは分かりません。新しい記憶はベクトルなしで保存されます。"
)
_OFF = (
    "通知を止めるには：CPERSONA_DEGRADED_ADVISORY=false を設定すると、この通知は出なくなります。"
    "問題そのものは直りません。"
)

FULL: Mapping[Sort, tuple[str, ...]] = {
    "fault": (
        (
            "CPersona は現在、意味による記憶の検索ができません。埋め込みエンドポイントが正しく応答していません。"
            "計測結果：{evidence}"
        ),
        _IMPACT,
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
        _OFF,
    ),
    "config": (
        (
            "CPersona は現在、意味による記憶の検索ができません。設定の誤りにより、埋め込みエンドポイントが"
            "呼び出されていません。計測結果：{evidence}"
        ),
        _IMPACT,
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
        _OFF,
    ),
    "hint": (
        (
            "CPersona は埋め込みバックエンドなしで動作しているため、意味による記憶の検索ができません。"
            "計測結果：{evidence}。これはサポートされている構成で、障害ではありません。"
        ),
        _IMPACT,
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
        _OFF,
    ),
}

#: Words that stand as they are, without gaps, by their English text: of the renderers, of places, and of the traps.
WORDS: Mapping[str, str] = {
    # verdicts and severities
    "PASS": "合格",
    "FAIL": "不合格",
    "UNKNOWN": "判定不能",
    "✅ pass": "✅ 合格",
    "❌ fail": "❌ 不合格",
    "❔ no verdict": "❔ 判定不能",
    "pass": "合格",
    "fail": "不合格",
    "no verdict": "判定不能",
    "FAULT": "障害",
    "WARNING": "警告",
    "HINT": "ヒント",
    "fault": "障害",
    "warning": "警告",
    "hint": "ヒント",
    "check": "検査",
    # what a finding says
    "subject": "対象",
    "place": "場所",
    "measured": "計測結果",
    "expected": "あるべき姿",
    "costs": "影響",
    "also": "あわせて",
    "fix": "対処",
    "verify": "再確認",
    "about": "項目",
    "waive by": "免除番号",
    # the rest of a report
    "Next": "次のコマンド",
    "No verdict": "判定できない理由",
    "because": "理由",
    "Notes": "注意",
    "note": "注意",
    "Checks": "検査",
    "group": "分類",
    "passed": "合格",
    "ran": "実施",
    "not made": "未実施",
    "not checked": "未実施",
    "s": "秒",
    "waived": "免除",
    "unknown": "判定不能",
    ", ": "、",
    ". ": "。",
    ".": "。",
    # places
    "This process": "このプロセス",
    "this process's environment": "このプロセスの環境変数",
    "this process": "このプロセス",
    "this shell": "このシェル",
    "an option of this command": "このコマンドのオプション",
    "-e on the command line": "コマンドラインの -e",
    "unknown place": "不明な場所",
    # the traps: titles, what is expected, what it costs
    "The server does not start with these settings": "この設定ではサーバーが起動しません",
    "a server that starts": "サーバーが起動すること",
    "there is no memory at all, and nobody who could tell the agent why": (
        "記憶がまったく使えず、その理由をエージェントに伝えるものもありません"
    ),
    "The words for the agent carry a secret": "エージェントへの文面に秘密の値が含まれています",
    "no key, password or query of an address in what an agent reads": (
        "エージェントが読む文面に、キー、パスワード、URL のクエリが含まれないこと"
    ),
    "the secret goes into the conversation, to its provider, and perhaps into a memory": (
        "秘密の値が会話に入り、モデルの提供元に送られ、記憶に残ることもあります"
    ),
    "The agent will be told that recall is degraded": "検索の不調がエージェントに通知されます",
    "an endpoint that answers the server with usable vectors": ("エンドポイントが、使えるベクトルをサーバーに返すこと"),
    "memories are found only by shared words, from the first recall on; the agent is told at the second": (
        "最初のリコールから、記憶は共通する語句でしか見つかりません。エージェントに通知されるのは 2 回目からです"
    ),
    "Recall by meaning is broken and the agent will not be told": (
        "意味による検索が壊れていますが、エージェントには通知されません"
    ),
    "stored vectors and an endpoint that go together, or an agent that is told": (
        "保存済みのベクトルとエンドポイントが合っていること。そうでなければ、エージェントに通知されること"
    ),
    "memories are not found by meaning, and nothing says so: silence looks like health": (
        "意味による検索で記憶が見つからず、何の通知もないため正常に見えます"
    ),
    "The notice is switched off while recall is broken": "検索が壊れていますが、通知が止められています",
    "CPERSONA_DEGRADED_ADVISORY unset while an endpoint is configured": (
        "エンドポイントを設定している間は、CPERSONA_DEGRADED_ADVISORY を設定しないこと"
    ),
    "recall finds memories only by shared words, and the agent is never told": (
        "記憶は共通する語句でしか見つからず、エージェントには一度も通知されません"
    ),
    "The agent will be told that there is no embedding backend": (
        "埋め込みバックエンドがないことがエージェントに通知されます"
    ),
    "CPERSONA_EMBEDDING_MODE=http or api, or CPERSONA_DEGRADED_ADVISORY=false where search by words alone is wanted": (
        "CPERSONA_EMBEDDING_MODE=http または api。語句だけの検索でよければ CPERSONA_DEGRADED_ADVISORY=false"
    ),
    "memories are found only by the words they share with the question; that is supported, and not broken": (
        "記憶は質問と共通する語句でしか見つかりません。これはサポートされている構成で、故障ではありません"
    ),
}
