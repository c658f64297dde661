-- Which tool calls touched which files. All of it is derived from stored events (ingest/touching.py) and can be
-- derived again; what changes in an event that has been looked at is noted by triggers, whoever changes it.

-- A directory that Git or an agent made a working tree, as paths spell it. Never forgotten: most are gone one day.
CREATE TABLE root (
    id INTEGER PRIMARY KEY,
    prefix TEXT NOT NULL UNIQUE,
    worktree TEXT NOT NULL,              -- the same with symbolic links followed
    project TEXT NOT NULL                -- Git's common directory
);

CREATE TABLE path (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE,           -- absolute where that can be proven, else as the call wrote it
    name TEXT NOT NULL,                  -- its last component
    absolute INTEGER NOT NULL,
    root INTEGER                         -- the deepest known one that contains it
);
CREATE INDEX path_name ON path (name);

CREATE TABLE touch (
    path INTEGER NOT NULL,
    time INTEGER NOT NULL,               -- the event's
    event INTEGER NOT NULL,
    session INTEGER NOT NULL,
    effects INTEGER NOT NULL,            -- bits in the order of embedded/touches.EFFECTS
    match INTEGER NOT NULL,              -- place in embedded/touches.MATCHES
    tool INTEGER,
    PRIMARY KEY (path, time, event)
) WITHOUT ROWID;
CREATE INDEX touch_event ON touch (event);

-- The head of what a touching call was given: reading it from its block would cost a block for every row shown.
CREATE TABLE action (
    event INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);

-- Events to look at again. New ones need no entry: their numbers lie above meta.touches_upto.
CREATE TABLE touch_todo (
    event INTEGER PRIMARY KEY
);

CREATE TRIGGER touch_changed AFTER UPDATE OF turn, type, time, flags, tool, place, rev, block, slot ON event
WHEN NEW.type IN (3, 4, 6) OR OLD.type IN (3, 4, 6) -- calls, results, system records
BEGIN
    INSERT OR IGNORE INTO touch_todo VALUES (NEW.id);
END;

CREATE TRIGGER touch_gone AFTER DELETE ON event
WHEN OLD.type IN (3, 4, 6)
BEGIN
    DELETE FROM touch WHERE event = OLD.id;
    DELETE FROM action WHERE event = OLD.id;
    DELETE FROM touch_todo WHERE event = OLD.id;
END;

-- Of a session that two stores tell, or of a copied head, only what is shown counts.
CREATE TRIGGER touch_hidden AFTER UPDATE OF hidden ON turn
WHEN NEW.hidden <> OLD.hidden
BEGIN
    INSERT OR IGNORE INTO touch_todo SELECT id FROM event WHERE turn = NEW.id AND type IN (3, 4, 6);
END;
