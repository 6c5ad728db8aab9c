"""Captured graphs, streams and events."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("graphs", tags=("hipgraph", "cudagraphs"))
streams = Family("graphs", tags=("queues",))


@family.probe(
    "graph-replay", "a graph captured once and replayed with other inputs", ("float32", "float16"), needs=("cuda",)
)
def graph_replay(ctx: Context) -> Case:
    weight = ctx.randn(64, 64)

    def replayed(*inputs: torch.Tensor) -> list[torch.Tensor]:
        on_device, place = weight.to(ctx.device), torch.zeros_like(inputs[0])
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries set themselves up outside of the capture
            torch.relu(place @ on_device)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = torch.relu(place @ on_device).sum(1)
        made = []
        for each in inputs:
            place.copy_(each)
            graph.replay()
            made.append(result.clone())
        return made

    return Case(
        replayed,
        tuple(ctx.randn(17, 64) for _ in range(3)),
        reference=lambda *inputs: [torch.relu(each @ weight.double()).sum(1) for each in inputs],
        host=True,
    )


@family.probe("graph-many-kernels", "a graph of a thousand small kernels", ("float32",), needs=("cuda",))
def graph_many(ctx: Context) -> Case:
    def replayed(x: torch.Tensor) -> torch.Tensor:
        place = x + 1  # the kernel is loaded outside of the capture
        place.copy_(x)
        torch.cuda.synchronize(x.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = place
            for _ in range(1000):
                result = result + 1
        graph.replay()
        return result.clone()

    return Case(replayed, (ctx.randn(1000),), reference=lambda x: x + 1000)


@streams.probe("streams", "four streams that wait for each other's events", ("float32",), needs=("cuda",))
def many_streams(ctx: Context) -> Case:
    def chained(x: torch.Tensor) -> torch.Tensor:
        lanes = [torch.cuda.Stream(x.device) for _ in range(4)]
        lanes[0].wait_stream(torch.cuda.current_stream(x.device))
        for step in range(40):
            lane = lanes[step % 4]
            with torch.cuda.stream(lane):
                x = x * 1.01 + 1
                event = torch.cuda.Event()
                event.record(lane)
            lanes[(step + 1) % 4].wait_event(event)
        torch.cuda.synchronize(x.device)
        return x

    def reference(x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = x * 1.01 + 1
        return x

    return Case(chained, (ctx.randn(100_003),), reference=reference)


@streams.probe("events-time", "an event's time lies within the wall time around it", ("float32",), needs=("cuda",))
def events(ctx: Context) -> Case:
    import time

    def measured(x: torch.Tensor) -> torch.Tensor:
        torch.cuda.synchronize(x.device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start = time.perf_counter()
        begin.record()
        for _ in range(50):
            x = x @ x / 512
        end.record()
        torch.cuda.synchronize(x.device)
        return torch.tensor([begin.elapsed_time(end), (time.perf_counter() - start) * 1000])

    def check(results: list[torch.Tensor]) -> str:
        inside, wall = (float(value) for value in results[0])
        return (
            ""
            if 0 < inside <= wall * 1.1 + 0.1
            else f"the events say {inside:.3f} ms, the clock on the wall {wall:.3f} ms"
        )

    return Case(measured, (ctx.randn(512, 512),), check=check, host=True)
