-- What session search needs of a session, beside its events. All but `messages` is derived with the text index.

ALTER TABLE session ADD COLUMN messages INTEGER NOT NULL DEFAULT 0; -- prompts and answers that are shown
ALTER TABLE session ADD COLUMN opening BLOB;                        -- chained digests of the first messages (text_rows.py)
ALTER TABLE session ADD COLUMN whole INTEGER NOT NULL DEFAULT -1;   -- messages in its whole-session document; -1: none yet

UPDATE session SET messages = (
    SELECT count(*) FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = session.id AND NOT t.hidden AND e.type <= 1
);

CREATE INDEX place_cwd ON place (cwd, session);
CREATE INDEX text_todo_whole ON text_todo (doc) WHERE class = 2;

-- Steps when rows change that a page of sessions shows or is ordered by: cursors hold it (ruling 46).
INSERT OR IGNORE INTO meta VALUES ('pages_rev', 0);

CREATE TRIGGER page_session AFTER UPDATE OF
    title, first_prompt, updated, messages, opening, event_count, source, file, files, relation, parent, machine ON session
WHEN (NEW.title, NEW.first_prompt, NEW.updated, NEW.messages, NEW.opening, NEW.event_count > 0, NEW.source, NEW.file,
      NEW.files, NEW.relation, NEW.parent, NEW.machine)
 IS NOT (OLD.title, OLD.first_prompt, OLD.updated, OLD.messages, OLD.opening, OLD.event_count > 0, OLD.source, OLD.file,
      OLD.files, OLD.relation, OLD.parent, OLD.machine)
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
END;

CREATE TRIGGER page_file AFTER UPDATE OF path, missing, problem ON file
WHEN (NEW.path, NEW.missing, NEW.problem IS NULL) IS NOT (OLD.path, OLD.missing, OLD.problem IS NULL)
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
END;

CREATE TRIGGER page_file_gone AFTER DELETE ON file
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
END;

CREATE TRIGGER page_place AFTER INSERT ON place
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
END;

CREATE TRIGGER page_place_gone AFTER DELETE ON place
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
END;

-- The whole-session document: its title and conversation.
CREATE TRIGGER whole_changed AFTER UPDATE OF title, last_event, shape, messages, event_count ON session
WHEN (NEW.title, NEW.last_event, NEW.shape, NEW.messages, NEW.event_count)
 IS NOT (OLD.title, OLD.last_event, OLD.shape, OLD.messages, OLD.event_count)
BEGIN
    INSERT INTO text_todo (doc, class)
        SELECT NEW.id, 2 WHERE NOT EXISTS (SELECT 1 FROM text_todo WHERE class = 2 AND doc = NEW.id);
END;

CREATE TRIGGER whole_gone AFTER DELETE ON session
BEGIN
    UPDATE meta SET v = v + 1 WHERE k = 'pages_rev';
    INSERT INTO text_todo (doc, class)
        SELECT OLD.id, 2 WHERE NOT EXISTS (SELECT 1 FROM text_todo WHERE class = 2 AND doc = OLD.id);
END;
