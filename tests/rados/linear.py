# SPDX-License-Identifier: Apache-2.0
"""Is a history of one key linearizable?  Each request must seem to happen at one moment between its beginning and its answer; one
without an answer at any moment after its beginning, or never.

The search is that of Wing and Gong with Lowe's memory of what was tried.  What changes nothing and fits is put next at once: later it
could only fit less.  Requests without an answer are tried last, and only where something needs them: else they could come later.  Of those
that do the same, as far as anybody has seen, the first is as good as any: so hundreds of them, in a long history, are not hundreds of
choices.  A value that was put once does not come again: as long as somebody has yet to find it, nothing takes its place.
"""
import collections
import math

NOTHING = None  # the key's state: there is no object; else (ETag, tags)
UNKNOWN = "unknown"


class Op:
    """kind: put, delete, get, tag, tags.  said: ok, no (the condition did not hold, or nothing is there), UNKNOWN.

    put     value, match: None, "*" (If-None-Match: *), or an ETag (If-Match)
    get     value: what was read
    tag     tags that were set
    tags    tags that were read
    """

    __slots__ = ("kind", "begun", "ended", "said", "value", "match", "tags", "who")

    def __init__(self, kind, begun, ended, said="ok", value=None, match=None, tags=None, who=""):
        self.kind, self.begun, self.said = kind, begun, said
        self.ended = math.inf if said == UNKNOWN else ended
        self.value, self.match, self.tags, self.who = value, match, tags, who

    def __repr__(self):
        return "%.6f-%.6f %s %s%s%s%s %s" % (
            self.begun, self.ended, self.kind, self.value or "", " if " + self.match if self.match else "",
            " tags=" + self.tags if self.tags is not None else "", " -> " + self.said, self.who)


IMPOSSIBLE = object()


def step(state, op):
    """The state behind the operation, or IMPOSSIBLE."""
    if op.kind == "put":
        holds = op.match is None or (state is NOTHING if op.match == "*" else state is not NOTHING and state[0] == op.match)
        if op.said == "no":
            return IMPOSSIBLE if holds else state
        return (op.value, "") if holds else IMPOSSIBLE
    if op.kind == "delete":
        return NOTHING
    if op.said == "no":
        return state if state is NOTHING else IMPOSSIBLE
    if state is NOTHING:
        return IMPOSSIBLE
    if op.kind == "get":
        return state if state[0] == op.value else IMPOSSIBLE
    if op.kind == "tag":
        return (state[0], op.tags)
    return state if state[1] == op.tags else IMPOSSIBLE


class Undecided(Exception):
    pass


def reads(op):
    return op.kind in ("get", "tags") or op.said == "no"


def check(ops, state=NOTHING, budget=1000000):
    """None where there is an order; else the operations that the best one could not get past."""
    ops = sorted(ops, key=lambda op: op.begun)
    sure = [i for i, op in enumerate(ops) if op.said != UNKNOWN]
    unsure = [i for i, op in enumerate(ops) if op.said == UNKNOWN and not reads(op)]
    # Those with an answer that are not placed yet: a linked list, from -1 to end.
    end = len(ops)
    after, before = dict(zip([-1] + sure, sure + [end])), dict(zip(sure + [end], [-1] + sure))
    # What was placed, and the state then: of those with an answer the number of the first that is not, and a bit for each from there.
    rank = {i: n for n, i in enumerate(sure)} | {i: n for n, i in enumerate(unsure)}
    low, window, late_placed, tried = 0, 0, 0, set()
    stack, taken = [], None  # what was placed, the state behind it, the reads that fitted there, what else may be next
    deepest, stuck = -1, []

    # Of each value that only one request has put, how many with an answer are not placed yet that found it.
    puts = collections.Counter(op.value for op in ops if op.kind == "put")
    waiting = collections.Counter()

    def found(op):
        """The value that its answer says was there."""
        value = op.value if op.kind == "get" else op.match if op.kind == "put" and op.match != "*" else None
        return value if op.said == "ok" and puts[value] == 1 else None

    for i in sure:
        waiting[found(ops[i])] += 1

    def fits(state, i):
        behind = step(state, ops[i])
        if behind is IMPOSSIBLE:
            return False
        if state is NOTHING or behind is not NOTHING and behind[0] == state[0] or state[0] not in waiting:
            return True
        return waiting[state[0]] == (found(ops[i]) == state[0])

    def place(i):
        nonlocal low, window, late_placed
        if i not in after:
            late_placed |= 1 << rank[i]
            return
        waiting[found(ops[i])] -= 1
        after[before[i]], before[after[i]] = after[i], before[i]
        window |= 1 << rank[i] - low
        while window & 1:
            low, window = low + 1, window >> 1

    def take_back(i):
        nonlocal low, window, late_placed
        if i not in after:
            late_placed &= ~(1 << rank[i])
            return
        waiting[found(ops[i])] += 1
        after[before[i]] = before[after[i]] = i
        if rank[i] < low:
            low, window = rank[i], (window + 1 << low - rank[i]) - 1
        window &= ~(1 << rank[i] - low)

    def candidates():
        """Those that may be next: nothing that is not placed ended before they began; and when the first of them ended."""
        found, first_end, i = [], math.inf, after[-1]
        while i != end and ops[i].begun <= first_end:
            found.append(i)
            first_end = min(first_end, ops[i].ended)
            i = after[i]
        return found, first_end

    # What an answer or a condition has named: another value is as good as any other that nobody saw.
    seen = {x for op in ops for x in (op.match, op.value if op.kind == "get" else None, op.tags if op.kind == "tags" else None)}

    def effect(op):
        return op.kind, op.match, op.value if op.value in seen else None, op.tags if op.tags in seen else None

    def useful(late):
        """Those without an answer that are worth placing here: something that may come next cannot do without, or ends otherwise."""
        late = list({effect(ops[i]): i for i in reversed(late)}.values())
        nexts_ = [ops[i] for i in nexts + late]
        return [i for i in late if any(
            op is not ops[i] and (step(state, op) is IMPOSSIBLE or op.kind == "tag") and step(after_, op) is not IMPOSSIBLE
            for after_ in [step(state, ops[i])] if after_ is not IMPOSSIBLE for op in nexts_)]

    while True:
        free, more = [], True
        while more:
            nexts, first_end = candidates()
            more = [i for i in nexts if reads(ops[i]) and step(state, ops[i]) is not IMPOSSIBLE]
            for i in more:
                place(i)
            free += more
        if after[-1] == end:
            return None
        choices = []
        if (low, window, late_placed, state) not in tried:
            tried.add((low, window, late_placed, state))
            if len(tried) > budget:
                raise Undecided("after %d states; the best order got no further than to one of\n  %s" % (
                    budget, "\n  ".join(map(repr, stuck))))
            choices = sorted((i for i in nexts if not reads(ops[i])), key=lambda i: ops[i].ended)
            choices += useful([i for i in unsure if not late_placed >> rank[i] & 1 and ops[i].begun <= first_end])
            if len(stack) > deepest:
                deepest, stuck = len(stack), [ops[i] for i in nexts]
        stack.append((taken, state, free, iter(choices)))
        while stack:
            last, state, free, rest = stack[-1]
            taken = next((i for i in rest if fits(state, i)), None)
            if taken is not None:
                break
            stack.pop()
            for i in reversed(free):
                take_back(i)
            if last is not None:
                take_back(last)
        if not stack:
            return stuck
        place(taken)
        state = step(state, ops[taken])
