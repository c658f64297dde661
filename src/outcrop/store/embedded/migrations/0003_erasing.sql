-- What was erased on purpose, so that no reading brings it back (outcrop forget), and what retention let go.

ALTER TABLE file ADD COLUMN erased INTEGER NOT NULL DEFAULT 0; -- bits of embedded/erase.py; 0: all that it held is here

-- A forgotten session: its identity alone, nothing that was said in it.
CREATE TABLE tombstone (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid BLOB NOT NULL UNIQUE,
    harness TEXT NOT NULL,
    source TEXT NOT NULL,
    native TEXT NOT NULL,
    at INTEGER NOT NULL                  -- when it was forgotten
);

-- Ids and origins of its own events: a fork that is read later holds copies of them.
CREATE TABLE tombstone_origin (
    origin BLOB NOT NULL,
    tombstone INTEGER NOT NULL,
    PRIMARY KEY (origin, tombstone)
) WITHOUT ROWID;

-- Digests of what was erased, only until it is proven gone (embedded/probe.py). kind 0: lines, 1: terms.
CREATE TABLE purge_mark (
    kind INTEGER NOT NULL,
    mark BLOB NOT NULL,
    PRIMARY KEY (kind, mark)
) WITHOUT ROWID;
