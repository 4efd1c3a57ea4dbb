"""What lives at once, found the slow way: every iteration is written out, then last uses are found.

The oracle of the closed footprint. It knows arrays only by their shapes.
"""

from functools import cache
from itertools import count

from blockbuster.interp.binding import bind
from blockbuster.interp.observers import loaded_ports, touched_inputs
from blockbuster.ir.ops import Collect, Head, Map, Misc, Reduce, Relabel, Transpose
from blockbuster.ir.types import whole


class Item:
    """An item in local memory (or, without a number, an entry of a list in global memory)."""

    def __init__(self, shape, number=None):
        self.shape, self.number = tuple(shape), number

    @property
    def size(self):
        size = 1
        for extent in self.shape:
            size *= extent
        return size


class Unrolled:
    """The events of a run: which items it makes, and which it uses."""

    def __init__(self, graph, setting):
        shapes = setting.shapes(graph)
        self.layout = bind(graph, shapes, sizes=setting.sizes, block_sizes=setting.block_sizes)
        self.numbers = count()
        self.events = []
        touched = touched_inputs(graph)
        inputs = [self.cut(given.type) for given in graph.inputs]
        local = [at for at in range(len(inputs)) if touched[at] and isinstance(inputs[at], Item)]
        self.load(inputs, local)
        outputs = self.graph(graph, inputs, {})
        self.event(uses=[value for value in outputs if isinstance(value, Item)])

    def peak(self):
        """The most elements alive at one event."""
        last = {number: at for at, (_, uses) in enumerate(self.events) for number in uses}
        live, most = {}, 0
        for at, (makes, _) in enumerate(self.events):
            live |= {item.number: item.size for item in makes}
            most = max(most, sum(live.values()))
            live = {number: size for number, size in live.items() if last.get(number, -1) > at}
        return most

    def event(self, makes=(), uses=()):
        self.events.append((list(makes), [item.number for item in uses]))

    def make(self, shape):
        return Item(shape, next(self.numbers))

    def load(self, values, ports):
        for port in ports:
            values[port] = self.make(values[port].shape)
        self.event(makes=[values[port] for port in ports])

    def cut(self, type):
        @cache
        def size(dim):
            return self.layout.size(dim)

        def entry(index):
            place = dict(zip(type.lists, index, strict=True))
            spans = self.layout.blocks
            return Item(len(spans[d][place[d]]) if d in place else size(d) for d in type.axes)

        assert {*type.axes, *type.lists} == {*whole(type)}
        return self.layout.nest(type.lists, entry)

    def graph(self, graph, inputs, spans):
        made = []

        def held(value):
            return inputs[value.port] if value.node < 0 else made[value.node][value.port]

        for node in graph.nodes:
            types = [graph.type_of(value) for value in node.operands]
            made.append(self.equation(node, [*map(held, node.operands)], types, spans))
        return [held(output.value) for output in graph.outputs]

    def equation(self, node, args, types, spans):
        op = node.op
        match op:
            case Map():
                return self.map(op, args, spans)
            case Relabel():
                return args
            case Transpose():
                return [self.transposed(op, args[0], types[0])]
            case Head():
                entry = args[0][0]
                if isinstance(entry, Item):
                    entry = self.make(entry.shape)
                    self.event(makes=[entry])
                return [entry]
            case Misc():
                return [self.cut(type) for type in node.types]
            case Reduce():
                total = self.make(args[0][0].shape)
                for entry in args[0]:
                    self.event([total, self.make(entry.shape)], [total])
                return [total]
        shown = {}
        for arg, type in zip(args, types, strict=True):
            shown.update(zip(type.axes, arg.shape, strict=True))
        shape = [shown.get(d, spans.get(d, self.layout.size(d))) for d in node.types[0].axes]
        result = self.make(shape)
        self.event([result], args)
        return [result]

    def transposed(self, op, arg, type):
        axes = [type.axes.index(d) for d in op.axes]

        def entry(index):
            value = arg
            for dim in type.lists:
                value = value[index[op.lists.index(dim)]]
            return Item((value.shape[a] for a in axes), value.number)

        return self.layout.nest(op.lists, entry)

    def map(self, op, args, spans):
        entering, firsts = args[: len(op.iterated)], args[len(op.iterated) :]
        results = [[] if isinstance(r, Collect) else None for r in op.results]
        for at, span in enumerate(self.layout.blocks[op.dim]):
            if at < op.start:
                outputs = firsts
            else:
                pairs = zip(entering, op.iterated, strict=True)
                inner = [arg[at] if iterated else arg for arg, iterated in pairs]
                self.load(inner, loaded_ports(op))
                outputs = self.graph(op.body, inner, {**spans, op.dim: len(span)})
            self.finish(results, outputs)
        return results

    def finish(self, results, outputs):
        """One iteration's outputs are stored or folded: all are held until they all are."""
        local = [output for output in outputs if isinstance(output, Item)]
        totals = []
        for port, output in enumerate(outputs):
            if isinstance(results[port], list):
                results[port].append(Item(output.shape) if isinstance(output, Item) else output)
            else:
                results[port] = results[port] or self.make(output.shape)
                totals.append(results[port])
        self.event(totals, [*local, *totals])
