# SPDX-License-Identifier: MIT
"""Which pages of a pool belong to which sequence."""
import numpy


class PageTables:
    """Pages of each sequence, in order. Sequences may share pages; writing into a shared one copies it first."""

    def __init__(self, batch: int, page_tokens: int, pages: int) -> None:
        self.page_tokens = page_tokens
        self.lengths = numpy.zeros(batch, numpy.int64)
        self.tables: "list[list[int]]" = [[] for _ in range(batch)]
        self.users = numpy.zeros(pages, numpy.int64)
        self.free = list(range(pages - 1, -1, -1))

    def add_pages(self, pages: int) -> None:
        before = len(self.users)
        users = numpy.concatenate([self.users, numpy.zeros(pages, numpy.int64)])
        free = [*range(before + pages - 1, before - 1, -1), *self.free]
        self.users, self.free = users, free

    def missing(self, counts: numpy.ndarray) -> int:
        """How many more pages these new tokens of each sequence require."""
        sizes = -(-(self.lengths + counts) // self.page_tokens)
        required = sum(max(int(size) - len(table), 0) for size, table in zip(sizes, self.tables))
        required += sum(1 for b, count in enumerate(counts) if count > 0 and self._shares_end(b))
        return max(required - len(self.free), 0)

    def grow(self, counts: numpy.ndarray) -> "list[tuple[int, int]]":
        """Takes pages for these new tokens; returns the pages to copy, (from, to)."""
        copies = []
        for b, count in enumerate(counts):
            table = self.tables[b]
            if count > 0 and self._shares_end(b):
                copies.append((table[-1], self._take()))
                self._leave(table[-1])
                table[-1] = copies[-1][1]
            while len(table) * self.page_tokens < self.lengths[b] + count:
                table.append(self._take())
        self.lengths += counts
        return copies

    def state(self) -> tuple:
        """For restore."""
        return [list(table) for table in self.tables], self.lengths.copy(), self.users.copy(), list(self.free)

    def restore(self, state: tuple) -> None:
        self.tables, self.lengths, self.users, self.free = state

    def truncate(self, b: int, length: int) -> None:
        keep = -(-length // self.page_tokens)
        for page in self.tables[b][keep:]:
            self._leave(page)
        del self.tables[b][keep:]
        self.lengths[b] = length

    def reorder(self, sources: "list[int]") -> None:
        """Sequence b becomes a copy of what sequence sources[b] was."""
        tables = [list(self.tables[source]) for source in sources]
        for table in tables:
            for page in table:
                self.users[page] += 1
        for table in self.tables:
            for page in table:
                self._leave(page)
        self.tables = tables
        self.lengths = self.lengths[sources]

    def slots(self, counts: numpy.ndarray, length: int) -> numpy.ndarray:
        """Slots of the last counts[b] tokens of each sequence; -1 from counts[b] on."""
        slots = numpy.full((len(self.tables), length), -1, numpy.int64)
        for b, count in enumerate(counts):
            at = numpy.arange(self.lengths[b] - count, self.lengths[b])
            table = numpy.asarray(self.tables[b], numpy.int64)
            slots[b, :count] = table[at // self.page_tokens] * self.page_tokens + at % self.page_tokens
        return slots

    def dense(self) -> numpy.ndarray:
        """A row of page numbers per sequence."""
        rows = numpy.zeros((len(self.tables), max(1, max(map(len, self.tables), default=1))), numpy.int32)
        for row, table in zip(rows, self.tables):
            row[: len(table)] = table
        return rows

    def _shares_end(self, b: int) -> bool:
        used = int(self.lengths[b]) % self.page_tokens
        return used != 0 and self.users[self.tables[b][-1]] > 1

    def _take(self) -> int:
        page = self.free.pop()
        self.users[page] = 1
        return page

    def _leave(self, page: int) -> None:
        self.users[page] -= 1
        if self.users[page] == 0:
            self.free.append(page)
