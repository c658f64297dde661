-- The truth: files read, sessions, turns, events and their contents. Never edited after a release: add a file.
-- Times are UTC milliseconds. uid and origin are the 16 bytes of ids.py. Ids are never reused, so an event's id is
-- its arrival number.

CREATE TABLE meta (
    k TEXT PRIMARY KEY,
    v
) WITHOUT ROWID;

-- Words that repeat on a million rows: tool names and models.
CREATE TABLE name (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

-- One file that sessions are read from, and how far (the checkpoint).
CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    harness TEXT NOT NULL,
    source TEXT NOT NULL,
    form TEXT NOT NULL,
    role TEXT NOT NULL,
    native TEXT,
    parent TEXT,
    device INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    offset INTEGER NOT NULL DEFAULT 0,   -- bytes consumed
    line INTEGER NOT NULL DEFAULT 0,     -- lines consumed
    head BLOB,                           -- digest of the first bytes
    head_size INTEGER NOT NULL DEFAULT 0,
    tail BLOB,                           -- digest of the bytes just before offset
    generation INTEGER NOT NULL DEFAULT 0, -- steps when the file is read anew: rows of older ones go
    state BLOB,                          -- zstd JSON of the reader's fold
    adapter_version INTEGER NOT NULL DEFAULT 0,
    first_time INTEGER,                  -- first recorded time: ranks the files of one session
    problem TEXT,                        -- why it cannot be read at the moment
    seen_at INTEGER NOT NULL DEFAULT 0,
    missing INTEGER NOT NULL DEFAULT 0,  -- 1: proven gone; its history is kept (ruling 41)
    UNIQUE (source, path)
);

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid BLOB NOT NULL UNIQUE,
    harness TEXT NOT NULL,
    source TEXT NOT NULL,
    native TEXT NOT NULL,
    title TEXT,
    summary TEXT,
    slug TEXT,
    label TEXT,
    first_prompt TEXT,
    version TEXT,
    agent TEXT,
    machine INTEGER NOT NULL DEFAULT 0,  -- 1: run by the harness for itself
    file INTEGER,                        -- its first file
    files INTEGER NOT NULL DEFAULT 0,    -- 1: it has several, so turns are ranked by file
    parent BLOB,                         -- uid, whether or not that session is here
    relation TEXT,
    head BLOB,                           -- origin of its first shared record: sessions with one head share history
    started INTEGER NOT NULL DEFAULT 0,  -- of own events, where there are any
    updated INTEGER NOT NULL DEFAULT 0,
    turn_count INTEGER NOT NULL DEFAULT 0,
    event_count INTEGER NOT NULL DEFAULT 0, -- 0: known by its facts alone, not shown
    completed INTEGER NOT NULL DEFAULT 0,
    mode INTEGER NOT NULL DEFAULT 0,     -- bits of its events: 1 tools, 2 own tools, 4 web
    first_event INTEGER,
    last_event INTEGER,
    shape INTEGER NOT NULL DEFAULT 0,    -- steps when an event goes or an existing ordinal changes: cursors die
    copies INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX session_updated ON session (updated, uid) WHERE event_count > 0;
CREATE INDEX session_head ON session (head) WHERE head IS NOT NULL;
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

-- Metadata as recorded, by file, so that a file read anew takes its own back.
CREATE TABLE fact (
    session INTEGER NOT NULL,
    file INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,                 -- JSON
    PRIMARY KEY (session, file, name)
) WITHOUT ROWID;

-- Where a session ran. worktree and common_dir (Git's) are as of the time of reading: both may be gone later.
-- project is the common directory, or without Git the canonical working directory.
CREATE TABLE place (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL DEFAULT '',
    worktree TEXT,
    common_dir TEXT,
    project TEXT,
    UNIQUE (session, cwd, branch)
);
CREATE INDEX place_project ON place (project, session);

CREATE TABLE turn (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid BLOB NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    file INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    native TEXT,                         -- the harness's own turn id
    ord INTEGER NOT NULL,                -- 1-based in the session; 0 while hidden
    place INTEGER NOT NULL,              -- its order inside its file
    hidden INTEGER NOT NULL DEFAULT 0,   -- bits of ingest/sessions.py; 0: shown
    started INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    ends INTEGER NOT NULL DEFAULT 0,     -- model.END_CODE; 0: not completed
    settled INTEGER NOT NULL DEFAULT 0,  -- 1: the next prompt proved that the agent had gone idle
    terminal INTEGER,                    -- event id
    user_event INTEGER,
    user_text TEXT,
    user_more INTEGER NOT NULL DEFAULT 0,
    reply_event INTEGER,                 -- last visible answer that may be final
    reply_text TEXT,
    reply_more INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,   -- 1: the last activity is that answer
    tools TEXT NOT NULL DEFAULT '',      -- name ids, first-seen order, comma separated
    types TEXT NOT NULL DEFAULT '',      -- type codes, first-seen order, comma separated
    last_event INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX turn_session ON turn (session, ord);

CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid BLOB NOT NULL,
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    ord INTEGER NOT NULL,                -- 1-based in the turn
    file INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    type INTEGER NOT NULL,               -- model.TYPE_CODE
    time INTEGER NOT NULL,
    flags INTEGER NOT NULL,              -- bits of embedded/rows.py
    ends INTEGER NOT NULL,
    tool INTEGER,
    model INTEGER,
    generator INTEGER,
    place INTEGER,
    origin BLOB,                         -- where it may be copied from; NULL: itself
    rev INTEGER NOT NULL DEFAULT 0,
    block INTEGER NOT NULL,
    slot INTEGER NOT NULL
);
CREATE UNIQUE INDEX event_uid ON event (uid);
CREATE INDEX event_turn ON event (turn, ord);

-- zstd of a JSON array of contents, up to 64 events of one session.
CREATE TABLE block (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    events INTEGER NOT NULL,
    size INTEGER NOT NULL,               -- bytes before compression
    z BLOB NOT NULL
);
CREATE INDEX block_session ON block (session);

-- Records and parts of records that no event holds, masked, compressed, with the hash of the unmasked bytes.
CREATE TABLE kept (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    session INTEGER,
    offset INTEGER NOT NULL,
    line INTEGER NOT NULL,
    reason TEXT NOT NULL,
    hash BLOB NOT NULL,
    origin TEXT,                         -- key of the event that it belongs to
    z BLOB NOT NULL
);
CREATE INDEX kept_file ON kept (file, offset);

-- Records that could not be read, with their place and reason.
CREATE TABLE problem (
    file INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    line INTEGER NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (file, offset, reason)
) WITHOUT ROWID;

-- What became of every record, by file.
CREATE TABLE census (
    file INTEGER NOT NULL,
    version TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,               -- event, fact, unknown, failed, or the reason why it gave none
    n INTEGER NOT NULL,
    PRIMARY KEY (file, version, kind, outcome)
) WITHOUT ROWID;

CREATE TABLE redaction (
    file INTEGER NOT NULL,
    rule TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (file, rule)
) WITHOUT ROWID;

-- Documents of the text index that are stale. class: 0 conversation, 1 the rest, 2 whole sessions.
CREATE TABLE text_todo (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL,
    class INTEGER NOT NULL
);
