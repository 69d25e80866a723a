"""One short capture of every rank, small enough for CI."""

import contextlib
import json
import os

import torch
import torch_npu
from torch_npu import profiler


@contextlib.contextmanager
def profiled(folder):
    """Skips ten steps (compilation, caches), then records four. Without a folder nothing is recorded."""
    if folder is None:
        yield None
        return
    config = profiler._ExperimentalConfig(
        profiler_level=profiler.ProfilerLevel.Level1,
        aic_metrics=profiler.AiCMetrics.PipeUtilization,
        data_simplification=True,
    )
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(skip_first=9, wait=0, warmup=1, active=4, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(folder, worker_name=f"rank{os.environ['RANK']}"),
        record_shapes=True,
        with_stack=True,
        experimental_config=config,
    ) as capture:
        run = {"torch": torch.__version__, "soc": torch_npu.npu.get_device_name(0)}
        capture.add_metadata_json("ci_run", json.dumps(run))
        yield capture
