# bash completion for cpersona-cli; made from the application, not by hand
_cpersona_cli() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="" path="" word
    ((COMP_CWORD > 0)) && previous="${COMP_WORDS[COMP_CWORD - 1]}"
    # --option=value stands here as three words
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]] && ((COMP_CWORD > 1)); then
        previous="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "${path:+$path }$word" in
            "doctor")
                path="${path:+$path }$word"
                ;;
            "probe")
                path="${path:+$path }$word"
                ;;
            "dimension")
                path="${path:+$path }$word"
                ;;
            "reembed")
                path="${path:+$path }$word"
                ;;
            "advisory-preview")
                path="${path:+$path }$word"
                ;;
            "backfill")
                path="${path:+$path }$word"
                ;;
            "demo")
                path="${path:+$path }$word"
                ;;
            "traps")
                path="${path:+$path }$word"
                ;;
            "traps list")
                path="${path:+$path }$word"
                ;;
            "traps explain")
                path="${path:+$path }$word"
                ;;
        esac
    done
    case "$path:$previous" in
        "doctor:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "doctor:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--only")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'names.mode-none names.mode-unsupported names.url-missing names.url-without-mode names.alias-too-old names.alias-shadowed names.empty-alias names.shared-block names.url-malformed names.url-port names.url-path names.url-slash names.url-custom names.url-wrong-api names.api-url-base names.api-url-embed names.api-ignores-url names.api-model-default names.key-missing names.key-malformed names.model-unused names.bool-words names.only-true names.not-text names.quoted names.number-unreadable names.word-unreadable names.body-limit-mode names.timeout names.refused names.not-finite names.misspelt names.unread names.removed names.too-new names.stray names.unexpanded network.localhost-name network.loopback-in-container network.wsl-loopback network.https-to-loopback network.advisory-off network.advisory-once network.prompt-prefix-model network.large-batches network.proxy-takes-loopback network.no-proxy-misses network.socks-proxy network.proxy-unusable network.port-of-another-service network.server-listens-elsewhere network.server-without-stdin network.server-provider-unset network.server-model-folder-relative network.servers-share-a-port network.server-speaks-mcp-only network.server-wants-token network.container-binds-loopback network.remote-route network.remote-index-off network.remote-without-blobs network.remote-index-relative endpoint.undecided endpoint.config-mode endpoint.config-url endpoint.config-credential endpoint.config-client endpoint.input-invalid endpoint.dns endpoint.resolver endpoint.refused endpoint.unroutable endpoint.connect-timeout endpoint.tls endpoint.proxy endpoint.disconnected endpoint.not-http endpoint.redirected endpoint.auth endpoint.route-not-found endpoint.model-not-found endpoint.not-an-embedding-model endpoint.no-model-loaded endpoint.embeddings-disabled endpoint.pooling-none endpoint.wrong-contract endpoint.no-batching endpoint.batch-too-large endpoint.input-too-large endpoint.nan-for-input endpoint.quota endpoint.upstream-failed endpoint.rejected endpoint.server-error endpoint.too-large endpoint.not-json endpoint.error-in-success endpoint.wrong-shape endpoint.base64-reply endpoint.empty endpoint.null-vector endpoint.count-mismatch endpoint.bad-index endpoint.ragged endpoint.bad-values endpoint.zero-vector endpoint.constant-vector endpoint.not-normalized endpoint.dimension-mismatch endpoint.model-mismatch endpoint.loopback-name endpoint.slow-start endpoint.unstable endpoint.key-needed endpoint.server-differs endpoint.key-shown endpoint.other-model endpoint.single-fails endpoint.wrong-order endpoint.weak-separation endpoint.crowded endpoint.truncating endpoint.window-too-small endpoint.body-limit endpoint.nan-for-some-inputs endpoint.some-texts-fail endpoint.dimensions-misstated advisory.no-start advisory.leaks-secret advisory.fault advisory.silent advisory.switched-off advisory.hint database.several database.spellings-differ database.modes-differ database.urls-differ database.models-differ database.labels-differ database.text-search-differs database.shell-differs database.path-unset database.path-relative database.path-tilde database.path-unexpanded database.path-quoted database.path-uri database.path-of-another-system database.path-control-character database.path-memory database.path-empty database.missing database.no-folder database.is-folder database.no-permission database.name-too-long database.not-sqlite database.empty database.foreign database.corrupt database.integrity-unknown database.locked database.folder-read-only database.stale-wal database.unreadable database.synced-folder database.unsafe-filesystem database.volatile-folder database.git-folder database.not-writable database.open-to-others database.disk-full database.wal-large database.export-folder database.alias-ledger-lost database.schema-newer database.schema-older database.schema-unnumbered database.objects-missing database.fts-unsupported database.fts-incomplete database.calibration-absent database.calibration-unreadable database.calibration-of-another-width database.index-files-old vectors.mixed-widths vectors.backlog vectors.unlabelled vectors.two-models vectors.rejected vectors.blocks-over-api vectors.calibration-frozen vectors.calibration-flips vectors.provider-width vectors.unreadable vectors.encoding vectors.not-finite vectors.zero vectors.not-unit vectors.blocks-width vectors.nodes-width vectors.stale-index vectors.foreign-rows vectors.drifted vectors.none identity.agent-without-memories identity.agent-spelling identity.agent-in-server identity.literal-auto identity.project-spelling identity.channel-spelling identity.policy-missing identity.policy-placeholder identity.policy-without-agent identity.policy-unclosed identity.policy-twice identity.policy-disagrees identity.policy-old identity.plugin-agent identity.hooks-doubled identity.memory-index identity.context-unusable identity.context-long identity.context-edited identity.acl-broken identity.acl-grant identity.alias-ledger recall.scan-window recall.reach-inert recall.limit-window recall.confidence-order recall.mode-inert recall.undated-confidence recall.autocut-inert recall.min-similarity recall.task-queue-off recall.episode-penalty recall.imported-episodes recall.boundary-spelling recall.beyond-window recall.content-cap recall.copies recall.profile-pool recall.timestamps recall.mixed-dates recall.undated registration.file-syntax registration.file-empty registration.file-encoding registration.file-unreadable registration.file-duplicate registration.not-restarted registration.local-scope registration.scopes registration.empty-record registration.not-approved registration.untrusted registration.disabled registration.doubled registration.wrong-file registration.packaged-desktop registration.moved-file registration.wrong-key registration.shape registration.program-missing registration.unexpanded registration.not-inherited registration.docker-interactive registration.docker-environment registration.docker-volume registration.leftover-words registration.startup-timeout version.cached version.tool-wins version.python version.broken-release version.beside-cembedding version.script-owner version.update-check version.mixed version.not-restarted version.migration transport.unknown transport.http-for-stdio transport.no-token transport.bad-token transport.token-ignored transport.address transport.no-header transport.oauth-alone transport.port transport.proxied start.undecided start.no-handshake start.stdout-noise start.slow start.tools-missing start.not-stored start.not-embedded start.not-recalled start.advisory start.not-ended tool.waiver-expired tool.waiver-unknown tool.waiver-unused names network endpoint advisory database vectors identity recall registration version transport start tool' -- "$current")
            return
            ;;
        "doctor:--skip")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'names.mode-none names.mode-unsupported names.url-missing names.url-without-mode names.alias-too-old names.alias-shadowed names.empty-alias names.shared-block names.url-malformed names.url-port names.url-path names.url-slash names.url-custom names.url-wrong-api names.api-url-base names.api-url-embed names.api-ignores-url names.api-model-default names.key-missing names.key-malformed names.model-unused names.bool-words names.only-true names.not-text names.quoted names.number-unreadable names.word-unreadable names.body-limit-mode names.timeout names.refused names.not-finite names.misspelt names.unread names.removed names.too-new names.stray names.unexpanded network.localhost-name network.loopback-in-container network.wsl-loopback network.https-to-loopback network.advisory-off network.advisory-once network.prompt-prefix-model network.large-batches network.proxy-takes-loopback network.no-proxy-misses network.socks-proxy network.proxy-unusable network.port-of-another-service network.server-listens-elsewhere network.server-without-stdin network.server-provider-unset network.server-model-folder-relative network.servers-share-a-port network.server-speaks-mcp-only network.server-wants-token network.container-binds-loopback network.remote-route network.remote-index-off network.remote-without-blobs network.remote-index-relative endpoint.undecided endpoint.config-mode endpoint.config-url endpoint.config-credential endpoint.config-client endpoint.input-invalid endpoint.dns endpoint.resolver endpoint.refused endpoint.unroutable endpoint.connect-timeout endpoint.tls endpoint.proxy endpoint.disconnected endpoint.not-http endpoint.redirected endpoint.auth endpoint.route-not-found endpoint.model-not-found endpoint.not-an-embedding-model endpoint.no-model-loaded endpoint.embeddings-disabled endpoint.pooling-none endpoint.wrong-contract endpoint.no-batching endpoint.batch-too-large endpoint.input-too-large endpoint.nan-for-input endpoint.quota endpoint.upstream-failed endpoint.rejected endpoint.server-error endpoint.too-large endpoint.not-json endpoint.error-in-success endpoint.wrong-shape endpoint.base64-reply endpoint.empty endpoint.null-vector endpoint.count-mismatch endpoint.bad-index endpoint.ragged endpoint.bad-values endpoint.zero-vector endpoint.constant-vector endpoint.not-normalized endpoint.dimension-mismatch endpoint.model-mismatch endpoint.loopback-name endpoint.slow-start endpoint.unstable endpoint.key-needed endpoint.server-differs endpoint.key-shown endpoint.other-model endpoint.single-fails endpoint.wrong-order endpoint.weak-separation endpoint.crowded endpoint.truncating endpoint.window-too-small endpoint.body-limit endpoint.nan-for-some-inputs endpoint.some-texts-fail endpoint.dimensions-misstated advisory.no-start advisory.leaks-secret advisory.fault advisory.silent advisory.switched-off advisory.hint database.several database.spellings-differ database.modes-differ database.urls-differ database.models-differ database.labels-differ database.text-search-differs database.shell-differs database.path-unset database.path-relative database.path-tilde database.path-unexpanded database.path-quoted database.path-uri database.path-of-another-system database.path-control-character database.path-memory database.path-empty database.missing database.no-folder database.is-folder database.no-permission database.name-too-long database.not-sqlite database.empty database.foreign database.corrupt database.integrity-unknown database.locked database.folder-read-only database.stale-wal database.unreadable database.synced-folder database.unsafe-filesystem database.volatile-folder database.git-folder database.not-writable database.open-to-others database.disk-full database.wal-large database.export-folder database.alias-ledger-lost database.schema-newer database.schema-older database.schema-unnumbered database.objects-missing database.fts-unsupported database.fts-incomplete database.calibration-absent database.calibration-unreadable database.calibration-of-another-width database.index-files-old vectors.mixed-widths vectors.backlog vectors.unlabelled vectors.two-models vectors.rejected vectors.blocks-over-api vectors.calibration-frozen vectors.calibration-flips vectors.provider-width vectors.unreadable vectors.encoding vectors.not-finite vectors.zero vectors.not-unit vectors.blocks-width vectors.nodes-width vectors.stale-index vectors.foreign-rows vectors.drifted vectors.none identity.agent-without-memories identity.agent-spelling identity.agent-in-server identity.literal-auto identity.project-spelling identity.channel-spelling identity.policy-missing identity.policy-placeholder identity.policy-without-agent identity.policy-unclosed identity.policy-twice identity.policy-disagrees identity.policy-old identity.plugin-agent identity.hooks-doubled identity.memory-index identity.context-unusable identity.context-long identity.context-edited identity.acl-broken identity.acl-grant identity.alias-ledger recall.scan-window recall.reach-inert recall.limit-window recall.confidence-order recall.mode-inert recall.undated-confidence recall.autocut-inert recall.min-similarity recall.task-queue-off recall.episode-penalty recall.imported-episodes recall.boundary-spelling recall.beyond-window recall.content-cap recall.copies recall.profile-pool recall.timestamps recall.mixed-dates recall.undated registration.file-syntax registration.file-empty registration.file-encoding registration.file-unreadable registration.file-duplicate registration.not-restarted registration.local-scope registration.scopes registration.empty-record registration.not-approved registration.untrusted registration.disabled registration.doubled registration.wrong-file registration.packaged-desktop registration.moved-file registration.wrong-key registration.shape registration.program-missing registration.unexpanded registration.not-inherited registration.docker-interactive registration.docker-environment registration.docker-volume registration.leftover-words registration.startup-timeout version.cached version.tool-wins version.python version.broken-release version.beside-cembedding version.script-owner version.update-check version.mixed version.not-restarted version.migration transport.unknown transport.http-for-stdio transport.no-token transport.bad-token transport.token-ignored transport.address transport.no-header transport.oauth-alone transport.port transport.proxied start.undecided start.no-handshake start.stdout-noise start.slow start.tools-missing start.not-stored start.not-embedded start.not-recalled start.advisory start.not-ended tool.waiver-expired tool.waiver-unknown tool.waiver-unused names network endpoint advisory database vectors identity recall registration version transport start tool' -- "$current")
            return
            ;;
        "doctor:--require")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'names.mode-none names.mode-unsupported names.url-missing names.url-without-mode names.alias-too-old names.alias-shadowed names.empty-alias names.shared-block names.url-malformed names.url-port names.url-path names.url-slash names.url-custom names.url-wrong-api names.api-url-base names.api-url-embed names.api-ignores-url names.api-model-default names.key-missing names.key-malformed names.model-unused names.bool-words names.only-true names.not-text names.quoted names.number-unreadable names.word-unreadable names.body-limit-mode names.timeout names.refused names.not-finite names.misspelt names.unread names.removed names.too-new names.stray names.unexpanded network.localhost-name network.loopback-in-container network.wsl-loopback network.https-to-loopback network.advisory-off network.advisory-once network.prompt-prefix-model network.large-batches network.proxy-takes-loopback network.no-proxy-misses network.socks-proxy network.proxy-unusable network.port-of-another-service network.server-listens-elsewhere network.server-without-stdin network.server-provider-unset network.server-model-folder-relative network.servers-share-a-port network.server-speaks-mcp-only network.server-wants-token network.container-binds-loopback network.remote-route network.remote-index-off network.remote-without-blobs network.remote-index-relative endpoint.undecided endpoint.config-mode endpoint.config-url endpoint.config-credential endpoint.config-client endpoint.input-invalid endpoint.dns endpoint.resolver endpoint.refused endpoint.unroutable endpoint.connect-timeout endpoint.tls endpoint.proxy endpoint.disconnected endpoint.not-http endpoint.redirected endpoint.auth endpoint.route-not-found endpoint.model-not-found endpoint.not-an-embedding-model endpoint.no-model-loaded endpoint.embeddings-disabled endpoint.pooling-none endpoint.wrong-contract endpoint.no-batching endpoint.batch-too-large endpoint.input-too-large endpoint.nan-for-input endpoint.quota endpoint.upstream-failed endpoint.rejected endpoint.server-error endpoint.too-large endpoint.not-json endpoint.error-in-success endpoint.wrong-shape endpoint.base64-reply endpoint.empty endpoint.null-vector endpoint.count-mismatch endpoint.bad-index endpoint.ragged endpoint.bad-values endpoint.zero-vector endpoint.constant-vector endpoint.not-normalized endpoint.dimension-mismatch endpoint.model-mismatch endpoint.loopback-name endpoint.slow-start endpoint.unstable endpoint.key-needed endpoint.server-differs endpoint.key-shown endpoint.other-model endpoint.single-fails endpoint.wrong-order endpoint.weak-separation endpoint.crowded endpoint.truncating endpoint.window-too-small endpoint.body-limit endpoint.nan-for-some-inputs endpoint.some-texts-fail endpoint.dimensions-misstated advisory.no-start advisory.leaks-secret advisory.fault advisory.silent advisory.switched-off advisory.hint database.several database.spellings-differ database.modes-differ database.urls-differ database.models-differ database.labels-differ database.text-search-differs database.shell-differs database.path-unset database.path-relative database.path-tilde database.path-unexpanded database.path-quoted database.path-uri database.path-of-another-system database.path-control-character database.path-memory database.path-empty database.missing database.no-folder database.is-folder database.no-permission database.name-too-long database.not-sqlite database.empty database.foreign database.corrupt database.integrity-unknown database.locked database.folder-read-only database.stale-wal database.unreadable database.synced-folder database.unsafe-filesystem database.volatile-folder database.git-folder database.not-writable database.open-to-others database.disk-full database.wal-large database.export-folder database.alias-ledger-lost database.schema-newer database.schema-older database.schema-unnumbered database.objects-missing database.fts-unsupported database.fts-incomplete database.calibration-absent database.calibration-unreadable database.calibration-of-another-width database.index-files-old vectors.mixed-widths vectors.backlog vectors.unlabelled vectors.two-models vectors.rejected vectors.blocks-over-api vectors.calibration-frozen vectors.calibration-flips vectors.provider-width vectors.unreadable vectors.encoding vectors.not-finite vectors.zero vectors.not-unit vectors.blocks-width vectors.nodes-width vectors.stale-index vectors.foreign-rows vectors.drifted vectors.none identity.agent-without-memories identity.agent-spelling identity.agent-in-server identity.literal-auto identity.project-spelling identity.channel-spelling identity.policy-missing identity.policy-placeholder identity.policy-without-agent identity.policy-unclosed identity.policy-twice identity.policy-disagrees identity.policy-old identity.plugin-agent identity.hooks-doubled identity.memory-index identity.context-unusable identity.context-long identity.context-edited identity.acl-broken identity.acl-grant identity.alias-ledger recall.scan-window recall.reach-inert recall.limit-window recall.confidence-order recall.mode-inert recall.undated-confidence recall.autocut-inert recall.min-similarity recall.task-queue-off recall.episode-penalty recall.imported-episodes recall.boundary-spelling recall.beyond-window recall.content-cap recall.copies recall.profile-pool recall.timestamps recall.mixed-dates recall.undated registration.file-syntax registration.file-empty registration.file-encoding registration.file-unreadable registration.file-duplicate registration.not-restarted registration.local-scope registration.scopes registration.empty-record registration.not-approved registration.untrusted registration.disabled registration.doubled registration.wrong-file registration.packaged-desktop registration.moved-file registration.wrong-key registration.shape registration.program-missing registration.unexpanded registration.not-inherited registration.docker-interactive registration.docker-environment registration.docker-volume registration.leftover-words registration.startup-timeout version.cached version.tool-wins version.python version.broken-release version.beside-cembedding version.script-owner version.update-check version.mixed version.not-restarted version.migration transport.unknown transport.http-for-stdio transport.no-token transport.bad-token transport.token-ignored transport.address transport.no-header transport.oauth-alone transport.port transport.proxied start.undecided start.no-handshake start.stdout-noise start.slow start.tools-missing start.not-stored start.not-embedded start.not-recalled start.advisory start.not-ended tool.waiver-expired tool.waiver-unknown tool.waiver-unused' -- "$current")
            return
            ;;
        "doctor:--fail-on")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'fault warning hint never' -- "$current")
            return
            ;;
        "doctor:--timeout")
            :
            return
            ;;
        "doctor:--wait")
            :
            return
            ;;
        "doctor:--waivers")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--write-waivers")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--format"|"doctor:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "doctor:--output"|"doctor:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "doctor:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "probe:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "probe:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "probe:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "probe:--url")
            :
            return
            ;;
        "probe:--mode")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'http api' -- "$current")
            return
            ;;
        "probe:--model")
            :
            return
            ;;
        "probe:--api-key-file")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "probe:--wait")
            :
            return
            ;;
        "probe:--count")
            :
            return
            ;;
        "probe:--sample-from-db")
            :
            return
            ;;
        "probe:--timeout")
            :
            return
            ;;
        "probe:--role")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'chat embedding' -- "$current")
            return
            ;;
        "probe:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "probe:--format"|"probe:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "probe:--output"|"probe:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "probe:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "dimension:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "dimension:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "dimension:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "dimension:--url")
            :
            return
            ;;
        "dimension:--mode")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'http api' -- "$current")
            return
            ;;
        "dimension:--model")
            :
            return
            ;;
        "dimension:--api-key-file")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "dimension:--sample")
            :
            return
            ;;
        "dimension:--timeout")
            :
            return
            ;;
        "dimension:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "dimension:--format"|"dimension:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "dimension:--output"|"dimension:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "dimension:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "reembed:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "reembed:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "reembed:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "reembed:--only")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'all missing mismatched damaged foreign' -- "$current")
            return
            ;;
        "reembed:--url")
            :
            return
            ;;
        "reembed:--mode")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'http api' -- "$current")
            return
            ;;
        "reembed:--model")
            :
            return
            ;;
        "reembed:--api-key-file")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "reembed:--concurrency")
            :
            return
            ;;
        "reembed:--batch-size")
            :
            return
            ;;
        "reembed:--max-errors")
            :
            return
            ;;
        "reembed:--max-tokens")
            :
            return
            ;;
        "reembed:--sample")
            :
            return
            ;;
        "reembed:--progress")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json none' -- "$current")
            return
            ;;
        "reembed:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "reembed:--format"|"reembed:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "reembed:--output"|"reembed:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "reembed:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "advisory-preview:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "advisory-preview:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "advisory-preview:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "advisory-preview:--replay")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'ok disabled config_mode config_url config_credential config_client input_invalid dns resolver refused unroutable connect_timeout tls proxy timeout disconnected not_http redirected auth route_not_found model_not_found not_an_embedding_model no_model_loaded embeddings_disabled pooling_none wrong_contract no_batching batch_too_large input_too_large nan_for_input throttled quota loading upstream_failed rejected server_error too_large not_json error_in_success wrong_shape base64_reply empty null_vector count_mismatch bad_index ragged bad_values zero_vector constant_vector not_normalized unstable truncating weak_separation dimension_mismatch model_mismatch internal' -- "$current")
            return
            ;;
        "advisory-preview:--sequence")
            :
            return
            ;;
        "advisory-preview:--recalls")
            :
            return
            ;;
        "advisory-preview:--session-key")
            :
            return
            ;;
        "advisory-preview:--transport")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'stdio streamable-http' -- "$current")
            return
            ;;
        "advisory-preview:--lang")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'en ja' -- "$current")
            return
            ;;
        "advisory-preview:--timeout")
            :
            return
            ;;
        "advisory-preview:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "advisory-preview:--format"|"advisory-preview:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "advisory-preview:--output"|"advisory-preview:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "advisory-preview:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "backfill:--client")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'claude-code claude-desktop codex cursor vscode copilot-cli windsurf gemini-cli zed clotocore env' -- "$current")
            return
            ;;
        "backfill:--registration")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--db")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--agent")
            :
            return
            ;;
        "backfill:--project")
            :
            return
            ;;
        "backfill:--channel")
            :
            return
            ;;
        "backfill:--as")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'memories episodes both' -- "$current")
            return
            ;;
        "backfill:--from")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'chatgpt claude claude-code codex cpersona open-webui plain' -- "$current")
            return
            ;;
        "backfill:--since")
            :
            return
            ;;
        "backfill:--until")
            :
            return
            ;;
        "backfill:--undated")
            :
            return
            ;;
        "backfill:--assume-tz")
            :
            return
            ;;
        "backfill:--summaries")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--url")
            :
            return
            ;;
        "backfill:--mode")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'http api' -- "$current")
            return
            ;;
        "backfill:--model")
            :
            return
            ;;
        "backfill:--api-key-file")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--progress")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json none' -- "$current")
            return
            ;;
        "backfill:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--format"|"backfill:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "backfill:--output"|"backfill:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "backfill:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "demo:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "demo:--format"|"demo:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "demo:--output"|"demo:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "demo:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "traps list:--group")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'names network endpoint advisory database vectors identity recall registration version transport start tool' -- "$current")
            return
            ;;
        "traps list:--severity")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'fault warning hint' -- "$current")
            return
            ;;
        "traps list:--command")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'doctor probe dimension reembed advisory-preview backfill traps demo' -- "$current")
            return
            ;;
        "traps list:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "traps list:--format"|"traps list:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "traps list:--output"|"traps list:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "traps list:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
        "traps explain:--config")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "traps explain:--format"|"traps explain:-f")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'text json agent sarif junit github markdown html' -- "$current")
            return
            ;;
        "traps explain:--output"|"traps explain:-o")
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            return
            ;;
        "traps explain:--color")
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'auto always never' -- "$current")
            return
            ;;
    esac
    case "$path" in
        "")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--install-completion --show-completion --help -h --version' -- "$current")
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'doctor probe dimension reembed advisory-preview backfill demo traps' -- "$current")
            fi
            ;;
        "doctor")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --only --skip --require --fail-on --offline --online --start --pre --timeout --wait --waivers --write-waivers --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            fi
            ;;
        "probe")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --url --mode --model --api-key-file --wait --count --sample-from-db --show-text --yes --timeout --identify --role --full --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                :
            fi
            ;;
        "dimension")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --url --mode --model --api-key-file --sample --deep --yes --offline --timeout --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                :
            fi
            ;;
        "reembed")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --only --url --mode --model --api-key-file --concurrency --batch-size --max-errors --max-tokens --cut-long --live --yes --dry-run --compare-only --sample --progress --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'status undo abandon finish forget' -- "$current")
            fi
            ;;
        "advisory-preview")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --live --replay --sequence --recalls --session-key --transport --lang --raw --yes --timeout --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                :
            fi
            ;;
        "backfill")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--client --registration --env --db --agent --project --channel --as --no-penalty --clamp --from --since --until --undated --assume-tz --summaries --no-embed --strict --url --mode --model --api-key-file --yes --dry-run --progress --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'repair undo' -- "$current")
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
            fi
            ;;
        "demo")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--keep --config --format -f --json --output -o --quiet -q --verbose -v --color --help -h' -- "$current")
            else
                :
            fi
            ;;
        "traps")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--help -h' -- "$current")
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'list explain' -- "$current")
            fi
            ;;
        "traps list")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--group --severity --command --config --format -f --json --output -o --color --help -h' -- "$current")
            else
                :
            fi
            ;;
        "traps explain")
            if [[ $current == -* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W '--config --format -f --json --output -o --color --help -h' -- "$current")
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W 'names.mode-none names.mode-unsupported names.url-missing names.url-without-mode names.alias-too-old names.alias-shadowed names.empty-alias names.shared-block names.url-malformed names.url-port names.url-path names.url-slash names.url-custom names.url-wrong-api names.api-url-base names.api-url-embed names.api-ignores-url names.api-model-default names.key-missing names.key-malformed names.model-unused names.bool-words names.only-true names.not-text names.quoted names.number-unreadable names.word-unreadable names.body-limit-mode names.timeout names.refused names.not-finite names.misspelt names.unread names.removed names.too-new names.stray names.unexpanded network.localhost-name network.loopback-in-container network.wsl-loopback network.https-to-loopback network.advisory-off network.advisory-once network.prompt-prefix-model network.large-batches network.proxy-takes-loopback network.no-proxy-misses network.socks-proxy network.proxy-unusable network.port-of-another-service network.server-listens-elsewhere network.server-without-stdin network.server-provider-unset network.server-model-folder-relative network.servers-share-a-port network.server-speaks-mcp-only network.server-wants-token network.container-binds-loopback network.remote-route network.remote-index-off network.remote-without-blobs network.remote-index-relative endpoint.undecided endpoint.config-mode endpoint.config-url endpoint.config-credential endpoint.config-client endpoint.input-invalid endpoint.dns endpoint.resolver endpoint.refused endpoint.unroutable endpoint.connect-timeout endpoint.tls endpoint.proxy endpoint.disconnected endpoint.not-http endpoint.redirected endpoint.auth endpoint.route-not-found endpoint.model-not-found endpoint.not-an-embedding-model endpoint.no-model-loaded endpoint.embeddings-disabled endpoint.pooling-none endpoint.wrong-contract endpoint.no-batching endpoint.batch-too-large endpoint.input-too-large endpoint.nan-for-input endpoint.quota endpoint.upstream-failed endpoint.rejected endpoint.server-error endpoint.too-large endpoint.not-json endpoint.error-in-success endpoint.wrong-shape endpoint.base64-reply endpoint.empty endpoint.null-vector endpoint.count-mismatch endpoint.bad-index endpoint.ragged endpoint.bad-values endpoint.zero-vector endpoint.constant-vector endpoint.not-normalized endpoint.dimension-mismatch endpoint.model-mismatch endpoint.loopback-name endpoint.slow-start endpoint.unstable endpoint.key-needed endpoint.server-differs endpoint.key-shown endpoint.other-model endpoint.single-fails endpoint.wrong-order endpoint.weak-separation endpoint.crowded endpoint.truncating endpoint.window-too-small endpoint.body-limit endpoint.nan-for-some-inputs endpoint.some-texts-fail endpoint.dimensions-misstated advisory.no-start advisory.leaks-secret advisory.fault advisory.silent advisory.switched-off advisory.hint database.several database.spellings-differ database.modes-differ database.urls-differ database.models-differ database.labels-differ database.text-search-differs database.shell-differs database.path-unset database.path-relative database.path-tilde database.path-unexpanded database.path-quoted database.path-uri database.path-of-another-system database.path-control-character database.path-memory database.path-empty database.missing database.no-folder database.is-folder database.no-permission database.name-too-long database.not-sqlite database.empty database.foreign database.corrupt database.integrity-unknown database.locked database.folder-read-only database.stale-wal database.unreadable database.synced-folder database.unsafe-filesystem database.volatile-folder database.git-folder database.not-writable database.open-to-others database.disk-full database.wal-large database.export-folder database.alias-ledger-lost database.schema-newer database.schema-older database.schema-unnumbered database.objects-missing database.fts-unsupported database.fts-incomplete database.calibration-absent database.calibration-unreadable database.calibration-of-another-width database.index-files-old vectors.mixed-widths vectors.backlog vectors.unlabelled vectors.two-models vectors.rejected vectors.blocks-over-api vectors.calibration-frozen vectors.calibration-flips vectors.provider-width vectors.unreadable vectors.encoding vectors.not-finite vectors.zero vectors.not-unit vectors.blocks-width vectors.nodes-width vectors.stale-index vectors.foreign-rows vectors.drifted vectors.none identity.agent-without-memories identity.agent-spelling identity.agent-in-server identity.literal-auto identity.project-spelling identity.channel-spelling identity.policy-missing identity.policy-placeholder identity.policy-without-agent identity.policy-unclosed identity.policy-twice identity.policy-disagrees identity.policy-old identity.plugin-agent identity.hooks-doubled identity.memory-index identity.context-unusable identity.context-long identity.context-edited identity.acl-broken identity.acl-grant identity.alias-ledger recall.scan-window recall.reach-inert recall.limit-window recall.confidence-order recall.mode-inert recall.undated-confidence recall.autocut-inert recall.min-similarity recall.task-queue-off recall.episode-penalty recall.imported-episodes recall.boundary-spelling recall.beyond-window recall.content-cap recall.copies recall.profile-pool recall.timestamps recall.mixed-dates recall.undated registration.file-syntax registration.file-empty registration.file-encoding registration.file-unreadable registration.file-duplicate registration.not-restarted registration.local-scope registration.scopes registration.empty-record registration.not-approved registration.untrusted registration.disabled registration.doubled registration.wrong-file registration.packaged-desktop registration.moved-file registration.wrong-key registration.shape registration.program-missing registration.unexpanded registration.not-inherited registration.docker-interactive registration.docker-environment registration.docker-volume registration.leftover-words registration.startup-timeout version.cached version.tool-wins version.python version.broken-release version.beside-cembedding version.script-owner version.update-check version.mixed version.not-restarted version.migration transport.unknown transport.http-for-stdio transport.no-token transport.bad-token transport.token-ignored transport.address transport.no-header transport.oauth-alone transport.port transport.proxied start.undecided start.no-handshake start.stdout-noise start.slow start.tools-missing start.not-stored start.not-embedded start.not-recalled start.advisory start.not-ended tool.waiver-expired tool.waiver-unknown tool.waiver-unused names network endpoint advisory database vectors identity recall registration version transport start tool' -- "$current")
            fi
            ;;
    esac
}
complete -F _cpersona_cli cpersona-cli cpersona
