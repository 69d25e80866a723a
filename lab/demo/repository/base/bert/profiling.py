"""One short capture of every rank, small enough for CI."""

import os

from torch_npu import profiler


def make_profiler(folder):
    """Skips ten steps (compilation, caches), then records four."""
    config = profiler._ExperimentalConfig(
        profiler_level=profiler.ProfilerLevel.Level1,
        aic_metrics=profiler.AiCMetrics.PipeUtilization,
        data_simplification=True,
    )
    return profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(skip_first=9, wait=0, warmup=1, active=4, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(folder, worker_name=f"rank{os.environ['RANK']}"),
        record_shapes=True,
        with_stack=True,
        experimental_config=config,
    )
