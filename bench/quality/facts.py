"""The facts that are planted, and what a person or a model would type to find each again.

Written by hand: a rule cannot say how somebody half remembers. What a rule can make of them (shuffled words, typing
mistakes) is made in `cases.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """Something said. `keys`: words of it, as they stand; `forms`, `plural`: queries in other forms, in another number;
    `phrase`: some of its words as they stand side by side; `question`: asked in plain words. `decoy` says something
    else with some of the keys, and holds the word `exclude`, which `text` does not."""

    text: str
    keys: tuple[str, ...]
    forms: str
    plural: str
    phrase: str
    question: str
    decoy: str
    exclude: str


class Piece(NamedTuple):
    """A fact and the query that should find it. `tool`: it stands in tool text, not in a message."""

    text: str
    query: str
    tool: bool = False


MESSAGES = (
    Message(
        "The nightly reconciliation skips orphaned invoices because the ledger exporter truncates trailing whitespace.",
        ("reconciliation", "orphaned", "invoices", "whitespace"),
        "reconciling orphan invoice truncating",
        "ledger exporters truncate invoice",
        "truncates trailing whitespace",
        "why are some invoices missing after the nightly reconciliation?",
        "The nightly reconciliation of the ledger exporter now prints paid invoices on staging.",
        "staging",
    ),
    Message(
        "We pinned the websocket heartbeat at forty seconds since the corporate proxy severs idle tunnels after sixty.",
        ("websocket", "heartbeat", "proxy", "tunnels"),
        "heartbeats pinning severed tunnel",
        "websockets heartbeats proxies tunnel",
        "severs idle tunnels",
        "how often do we send a heartbeat so that the proxy does not cut the websocket?",
        "The websocket client behind the proxy and its tunnels is measured by the kubernetes probe.",
        "kubernetes",
    ),
    Message(
        "Thumbnails came out rotated as the importer dropped the orientation tag before resizing portraits.",
        ("thumbnails", "rotated", "orientation", "portraits"),
        "rotating thumbnail oriented portrait",
        "thumbnail importers orientation tags portrait",
        "dropped the orientation tag",
        "what made the thumbnails turn sideways when portraits were resized?",
        "Thumbnails with a wrong orientation are skipped in the android gallery.",
        "android",
    ),
    Message(
        "The coupon service double charged refunds whenever two workers claimed the same idempotency key.",
        ("coupon", "refunds", "workers", "idempotency"),
        "charging refunded worker claims idempotency",
        "coupons refund worker idempotency keys",
        "same idempotency key",
        "when did customers get charged twice for refunds by the coupon service?",
        "The coupon service lists its workers by idempotency in the sandbox.",
        "sandbox",
    ),
    Message(
        "Compaction stalls vanish once bloom filters are rebuilt with nine bits for every key.",
        ("compaction", "stalls", "bloom", "filters"),
        "compacting stalled rebuilding filter",
        "compactions stall bloom filter bit",
        "nine bits for every key",
        "how many bits per key do the bloom filters need so that compaction does not stall?",
        "Compaction waits while bloom filters are loaded from the glacier tier.",
        "glacier",
    ),
    Message(
        "Locale negotiation falls back to Portuguese because the gateway lowercases the region subtag.",
        ("locale", "negotiation", "gateway", "subtag"),
        "negotiating locales lowercased region",
        "locales gateways subtags regions",
        "lowercases the region subtag",
        "why do visitors see Portuguese after the locale negotiation?",
        "Locale files of the gateway are listed in verbose mode.",
        "verbose",
    ),
    Message(
        "Replaying the journal takes eleven minutes unless checksums are verified lazily by the background scrubber.",
        ("journal", "checksums", "lazily", "scrubber"),
        "replayed journals verifying scrubbers",
        "journals checksum scrubbers minute",
        "verified lazily by the background scrubber",
        "what makes replaying the journal take so long?",
        "The scrubber reads the journal lazily on windows.",
        "windows",
    ),
    Message(
        "Autocomplete forgot accented surnames until the trigram table was rebuilt with the unaccent extension.",
        ("autocomplete", "surnames", "trigram", "unaccent"),
        "autocompleting surname rebuilding trigrams",
        "autocompletes surname trigrams extensions",
        "rebuilt with the unaccent extension",
        "which extension made autocomplete find surnames with accents?",
        "Autocomplete of places uses a trigram index in the legacy portal.",
        "legacy",
    ),
    Message(
        "The drone firmware rejects waypoints above the geofence when its barometer has not been calibrated.",
        ("firmware", "waypoints", "geofence", "barometer"),
        "rejecting waypoint calibrating barometers",
        "drones waypoint geofences barometers",
        "has not been calibrated",
        "why does the drone refuse waypoints over the geofence?",
        "The firmware shows the geofence and the barometer on the simulator.",
        "simulator",
    ),
    Message(
        "Payroll rounding drifted by one cent since overtime was multiplied before the currency conversion.",
        ("payroll", "rounding", "overtime", "currency"),
        "rounded drifting multiplying conversions",
        "payrolls cents currencies conversions",
        "multiplied before the currency conversion",
        "where does the missing cent in the payroll come from?",
        "Payroll keeps overtime by currency in the archive.",
        "archive",
    ),
)

IDENTIFIERS = (  # a part of a name written with underscores
    Piece("The culprit is purge_stale_manifests, it runs before the lease is renewed.", "stale manifests"),
    Piece("I moved the check into flush_pending_ballots so that the tally is right.", "pending ballots"),
    Piece("rebalance_turbine_shards ignores the weight of cold nodes.", "turbine_shards"),
    Piece("Set MAX_ORCHARD_BACKLOG to 12, anything above starves the pickers.", "orchard backlog"),
    Piece("decode_walrus_frame returns the header twice for empty bodies.", "walrus_frame"),
    Piece("def sync_harvest_calendar(year): return load(year)", "harvest calendar", tool=True),
    Piece("def drop_marble_cache(tenant): tenant.marbles.clear()", "marble_cache", tool=True),
    Piece("call verify_lagoon_digest(path) or exit", "lagoon digest", tool=True),
    Piece("warm_beetle_pool(4)", "beetle pool", tool=True),
    Piece("retry_gravel_upload = partial(upload, tries=3)", "gravel upload", tool=True),
)
CAMELS = (  # a part of a name written in humps, or the name written otherwise
    Piece("The bug sits in resolveQuarryPermit, which caches the denial.", "quarry permit"),
    Piece("useLanternTheme must not be called outside a provider.", "LanternTheme"),
    Piece("ParsnipQueueDrainer swallows the interrupt.", "parsnip queue"),
    Piece("renderSledgeTooltip flickers since it measures before paint.", "render_sledge_tooltip"),
    Piece("We renamed fetchOspreyRoster and kept an alias.", "osprey roster"),
    Piece("export class TundraLeaseBroker extends Broker {}", "lease broker tundra", tool=True),
    Piece("const mistralVoucherCount = vouchers.length", "voucher count mistral", tool=True),
    Piece("public void applyFennelDiscount(Order order)", "FennelDiscount", tool=True),
    Piece("func NewHeronIndexer() *HeronIndexer", "heron indexer", tool=True),
    Piece("let bisonTokenRing = Ring::new(8);", "bison token", tool=True),
)
PATHS = (  # part of a path
    Piece("The setting lives in services/falafel/config/limits.toml, not in the chart.", "falafel/config"),
    Piece("Please look at packages/umbrella-ui/src/Carousel.tsx first.", "Carousel.tsx"),
    Piece("C:\\work\\saddlebag\\installer\\setup.iss still has the old guid.", "saddlebag installer"),
    Piece("I deleted tools/bench/plover_runner.py since nobody calls it.", "plover_runner.py"),
    Piece("docs/adr/0042-pigeonhole.md explains the choice.", "0042-pigeonhole"),
    Piece("/srv/app/billing/kestrel/migrations/0019_split.sql", "kestrel/migrations", tool=True),
    Piece("/home/dev/src/gazette/cmd/typeset/main.go", "gazette typeset", tool=True),
    Piece("/opt/build/quilt/target/release/patchwork.rlib", "patchwork.rlib", tool=True),
    Piece("/var/lib/haddock/snapshots/latest.tar", "haddock/snapshots", tool=True),
    Piece("/work/frontend/routes/sommelier/index.vue", "sommelier index.vue", tool=True),
)
HASHES = (  # the first digits of a digest
    Piece("Bisect ends at 9f31c7ab02de44518c0b6a7715de903aa41b22c7, the eager flush.", "9f31c7ab02"),
    Piece("Revert 4be81d60fa9932c7710c55ad2e8b64f0917ad3e2 before the release.", "4be81d6"),
    Piece("The image is sha256:c07d5e1fa3b94b6680d2f17c9e0a55d13b7c20f8e4419a66d5021ffb7a3e9c18.", "c07d5e1fa3b9"),
    Piece("I cherry-picked e5520ab7d91c48f3b6602cd1874fae90b3d57a11 onto main.", "e5520ab7"),
    Piece("Since 17cc90de5ab3f84e2d60b7199ca0537f6be4d802 the tests pass alone.", "17cc90de5a"),
    Piece("[main a93f05c71be2d8460f95c3ae7d1180b246f0ce59] tidy the greenhouse", "a93f05c7", tool=True),
    Piece("commit 6d02f8b3c915ae47d0e8631fb9275ac40e8d13f6", "6d02f8b3c9", tool=True),
    Piece("HEAD is now at f2b8a6019c5d3e74ab901c6e28d457f03b9ea815", "f2b8a60", tool=True),
    Piece("etag 38e9c1d07ba64f52938ce0a1b7d5f46ac2093e71", "38e9c1d07ba6", tool=True),
    Piece("digest: 0bd7f4e62a8c915d3f60e7b2c9a4185ed73f06b1", "0bd7f4e6", tool=True),
)
ERRORS = (  # an error as it is pasted later, with other numbers, addresses and places
    Piece(
        "panicked at 'turnstile overflow: slot 4411 of 4096', src/turnstile.rs:218:17",
        "thread 'main' panicked at 'turnstile overflow: slot 5120 of 5000', src/turnstile.rs:231:9",
    ),
    Piece(
        "It says dial tcp 10.4.2.19:7443: connect: no route to bollard (attempt 3)",
        "dial tcp 10.9.31.7:7443: connect: no route to bollard (attempt 11)",
    ),
    Piece(
        "KeyError: 'cassowary_9917' raised at 0x7f3a9c04e1d0 in _pluck",
        "KeyError: 'cassowary_1204' raised at 0x55d0a1b2c3e8 in _pluck",
    ),
    Piece(
        "ORA-20817: haystack partition P_20260114 is sealed, job 88213",
        "ORA-20817: haystack partition P_20261102 is sealed, job 90377",
    ),
    Piece(
        "npm ERR! code EWICKET while linking /tmp/npm-91834/wicket@4.1.0",
        "npm ERR! code EWICKET while linking /tmp/npm-20017/wicket@4.2.3",
    ),
    Piece(
        "Segmentation fault at address 0x00007ffd1c3a2b10 in frobnicate_span (pid 41177)",
        "Segmentation fault at address 0x00007ffe99c0d4e8 in frobnicate_span (pid 902)",
        tool=True,
    ),
    Piece(
        "E   AssertionError: expected 31 gherkins, got 29 (tests/test_brine.py:77)",
        "AssertionError: expected 54 gherkins, got 50 (tests/test_brine.py:102)",
        tool=True,
    ),
    Piece(
        "java.lang.IllegalStateException: drawbridge 7 already lowered at Drawbridge.java:155",
        "java.lang.IllegalStateException: drawbridge 12 already lowered at Drawbridge.java:161",
        tool=True,
    ),
    Piece(
        "2026-03-02T09:14:33Z WARN shearwater timed out after 30000 ms, request 5b1e77aa-90c4-4d0f-8a35-1f27c2e0bb91",
        "2026-07-21T18:40:02Z WARN shearwater timed out after 45000 ms, request c94f00d2-1b7e-4c55-b2aa-0d9182734a5e",
        tool=True,
    ),
    Piece(
        "error[E0499]: cannot borrow `self.trellis` as mutable more than once, --> src/vine.rs:64:13",
        "error[E0499]: cannot borrow `self.trellis` as mutable more than once --> src/vine.rs:80:21",
        tool=True,
    ),
)
SCRIPTS = (  # a part of a run that is written without blanks
    Piece("データベースの移行手順を更新しました。夜間に実行してください。", "移行手順"),
    Piece("缓存失效的原因是时区转换错误。", "时区转换"),
    Piece("배포 전에 인증서갱신작업을 먼저 확인해야 합니다.", "인증서갱신"),
    Piece("请先检查支付网关的超时设置。", "支付网关"),
    Piece("ログ集計サーバーの遅延は索引の破損が原因でした。", "索引の破損"),
    Piece("ระบบสำรองข้อมูลล้มเหลวเพราะดิสก์เต็ม", "สำรองข้อมูล"),
)
ACCENTS = (  # typed without accents, or with them where there are none
    Piece("La migración del almacén quedó bloqueada por el índice único.", "migracion almacen indice"),
    Piece("Der Größenvergleich der Schlüssel schlägt bei Umlauten fehl.", "grossenvergleich schlussel"),
    Piece("Le déploiement échoue quand la région est forcée à Genève.", "deploiement Geneve region forcee"),
    Piece("A naive cafe finder ignores the facade of older shops.", "naïve café façade"),
    Piece("Sørensen asked for a żółw icon beside the loading bar.", "sorensen zolw icon"),
    Piece("O relatório de exceções não considera o fuso horário de São Tomé.", "relatorio excecoes Sao Tome"),
)
DEEP = (  # far inside a tool output of 100 KB
    Piece("WARN: oxbow valve 3 reports negative pressure", "oxbow valve negative pressure", tool=True),
    Piece("ticket PUFFIN-8842 closed without a reviewer", "PUFFIN-8842", tool=True),
    Piece("checksum mismatch in larder segment 77", "larder segment checksum mismatch", tool=True),
    Piece("user sprocketwright granted role janitor", "sprocketwright janitor", tool=True),
    Piece("deprecated: winnow_chaff() will be removed", "winnow_chaff deprecated", tool=True),
    Piece("GET /api/v3/marzipan/export 418 in 9 ms", "marzipan export 418", tool=True),
)
REASONING = (
    Piece("If I vacuum the gondola table now the replica will lag, so better wait for the maintenance slot.",
          "gondola vacuum replica lag"),
    Piece("The user probably means the thimble parser rather than the needle parser.", "thimble parser needle parser"),
    Piece("Perhaps the corduroy driver caches the DNS answer for ever.", "corduroy driver caches DNS"),
    Piece("A semaphore around the wombat client would serialise the uploads.", "semaphore wombat uploads"),
    Piece("I suspect an off by one in the turnip window.", "turnip window off by one"),
)  # fmt: skip
TITLES = (
    Piece("Untangle the periscope deploy", "periscope deploy"),
    Piece("Mustard theme contrast audit", "mustard contrast audit"),
    Piece("Hovercraft telemetry backfill plan", "hovercraft telemetry backfill"),
    Piece("Fix the flaky crocodile fixture", "flaky crocodile"),
    Piece("Retire the old abacus endpoint", "abacus endpoint retire"),
)
FORKS = (
    Piece("The zeppelin mirror must be frozen before the schema cutover.", "zeppelin mirror schema cutover"),
    Piece("Use the apricot bucket for dumps, the plum one is public.", "apricot bucket dumps"),
    Piece("Tenant walnut has its own rate limiter with burst 45.", "walnut tenant rate limiter burst"),
    Piece("The yodel endpoint answers 202 until the ledger is warm.", "yodel endpoint 202 ledger"),
    Piece("Never run the tadpole job while the fsck timer is armed.", "tadpole job fsck timer"),
)


class Spread(NamedTuple):
    """A session that holds the words of the query, no message of it all of them."""

    parts: tuple[str, ...]
    query: str


SPREAD = (
    Spread(("The lighthouse cluster is out of file handles.", "It is the sardine daemon, it never closes them.",
            "Raise the ulimit on both hosts."), "lighthouse sardine ulimit"),
    Spread(("Can we ship the paprika release on Friday?", "Only if the changelog bot is fixed.",
            "It posts to the wrong matrix room."), "paprika changelog matrix"),
    Spread(("The tarantula crawler is blocked again.", "Their robots file lists us by user agent.",
            "Then ask Odette for an exemption."), "tarantula robots Odette"),
    Spread(("Invoices for the Lisbon office have no stamp.", "The stamp renderer needs libcairo.",
            "The slim image dropped it in April."), "Lisbon stamp libcairo"),
    Spread(("Where does the moonstone flag come from?", "A feature gate in the concierge service.",
            "It is on for every tenant since the offsite."), "moonstone concierge offsite"),
    Spread(("Our bagpipe benchmark got slower.", "Allocation doubled with the arena patch.",
            "Then revert the patch on the release branch."), "bagpipe arena revert"),
)  # fmt: skip


class Dialogue(NamedTuple):
    """An answer that does not name what it is about; the prompt before it does. `decoy`: nearly the same answer about
    something else. The query needs both."""

    prompt: str
    answer: str
    query: str
    decoy: tuple[str, str]


DIALOGUES = (
    Dialogue("Why is the falcon importer so slow?", "It opens the archive anew for each row and parses the date twice.",
             "falcon importer parses date twice",
             ("Why is the osprey exporter slow?", "It opens the report anew for each row and parses the date twice.")),
    Dialogue("Which port does the begonia gateway use in the lab?", "It listens on 7345 there, the firewall is open.",
             "begonia gateway port firewall",
             ("Which port does the dahlia gateway use in the lab?", "It listens on 7912 there, the firewall is open.")),
    Dialogue("Who owns the sextant dashboards?", "Ramona does since the spring; ask her before any rename.",
             "sextant dashboards owner Ramona rename",
             ("Who owns the compass dashboards?", "Ramona does since the autumn; ask her before any rename.")),
    Dialogue("Can the cinnamon worker be restarted by day?", "Yes, it drains its queue within a minute.",
             "cinnamon worker restart drains queue",
             ("Can the nutmeg worker be restarted by day?", "No, it drains its queue within an hour.")),
    Dialogue("Where are the backups of the ostrich tenant?", "In the cold bucket in Oslo, kept for ninety days.",
             "ostrich backups cold bucket Oslo",
             ("Where are the backups of the emu tenant?", "In the cold bucket in Oslo, kept for thirty days.")),
    Dialogue("What broke the harpsichord pipeline?", "A renamed secret: the runner read an empty token.",
             "harpsichord pipeline secret empty token",
             ("What broke the clavichord pipeline?", "A deleted secret: the runner read an empty token.")),
)  # fmt: skip
