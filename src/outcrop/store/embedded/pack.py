"""Packs the small blocks that live events leave behind: many contents together take a third of the room.

Every event that was read while its session went on stands in a block of its own or of a few. When the session has
fallen quiet they are written together, under new block numbers, so that readers in an older state still find theirs.
"""

from __future__ import annotations

from outcrop.store.embedded import rows
from outcrop.store.embedded.write import Writer, text_class

WORTH = 4
"""So many small blocks of a session are worth the work."""
_MARK = "packed_upto"
_MAY_BE_SMALL = max(size.events for size in rows.BLOCK_SIZE) // 2


def _is_small(kind: int, events: int, size: int) -> bool:
    """Whether a block holds less than half of what it may."""
    most = rows.BLOCK_SIZE[kind]
    return 2 * events < most.events and 2 * size < most.bytes


def due(writer: Writer) -> list[int]:
    """Sessions with enough small blocks among those that came since the last time, which is noted by `done`.

    What a first build writes is packed well already, and not looked at.
    """
    upto = writer.meta(_MARK)
    if upto is None:
        done(writer)
        return []
    found = writer.db.execute(
        "SELECT session FROM block WHERE id > ? AND events < ? GROUP BY session HAVING count(*) >= ?",
        (upto, _MAY_BE_SMALL, WORTH),
    )
    return [row[0] for row in found]


def done(writer: Writer) -> None:
    """All that stands now has been looked at."""
    newest = writer.db.execute("SELECT coalesce(max(id), 0) FROM block").fetchone()[0]
    if writer.meta(_MARK) != newest:
        with writer.transaction():
            writer.set_meta(_MARK, newest)


def pack(writer: Writer, session: int) -> int:
    """Write a session's small blocks together, in one transaction; how many blocks fewer there are."""
    with writer.transaction():
        events = writer.db.execute(
            "SELECT id, type, block, slot FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?) ORDER BY id",
            (session,),
        ).fetchall()
        kinds = {block: text_class(type) for _, type, block, _ in events}
        some = writer.db.execute(
            "SELECT id, events, size, z FROM block WHERE session = ? AND events < ?", (session, _MAY_BE_SMALL)
        )
        small = {
            number: z
            for number, count, size, z in some
            if number not in kinds or _is_small(kinds[number], count, size)  # some hold nothing any more
        }
        if len(small) < WORTH:
            return 0
        before = {row[0] for row in writer.db.execute("SELECT event FROM touch_todo")}
        decoded = {number: rows.decode_block(z) for number, z in small.items()}
        made = 0
        moved: list[tuple[int, int, int]] = []
        for kind, most in enumerate(rows.BLOCK_SIZE):
            contents: list[bytes] = []
            number = size = 0
            for id, type, block, slot in events:
                if block not in decoded or text_class(type) != kind:
                    continue
                data = rows.encode_content(decoded[block][slot])
                if most.full(len(contents), size + len(data)):
                    writer.add_block(number, session, contents)
                    contents, size = [], 0
                if not contents:
                    number = writer.take("block")
                    made += 1
                moved.append((number, len(contents), id))
                contents.append(data)
                size += len(data)
            if contents:
                writer.add_block(number, session, contents)
        writer.db.executemany("UPDATE event SET block = ?, slot = ? WHERE id = ?", moved)
        writer.db.executemany("DELETE FROM block WHERE id = ?", [(number,) for number in small])
        # The contents are the same: nothing that follows from them is stale.
        writer.db.executemany(
            "DELETE FROM touch_todo WHERE event = ?", [(id,) for _, _, id in moved if id not in before]
        )
        return len(small) - made
