"""Runs a LLaMA-Factory recipe with the Ascend profiler: torchrun profile_llamafactory.py RECIPE.yaml [key=value ...]"""

import os

import torch_npu
from llamafactory.train.tuner import run_exp
from transformers import TrainerCallback


class Profile(TrainerCallback):
    """Steps 12 to 14 of every rank; a step is an optimizer step."""

    def on_train_begin(self, args, state, control, **kwargs):
        P = torch_npu.profiler
        self.profiler = P.profile(
            activities=[P.ProfilerActivity.CPU, P.ProfilerActivity.NPU],
            schedule=P.schedule(skip_first=10, wait=0, warmup=1, active=3, repeat=1),
            on_trace_ready=P.tensorboard_trace_handler(
                os.environ.get("PROFILE_DIR", "prof"), worker_name=f"rank{os.environ.get('RANK', '0')}"
            ),
            record_shapes=True,
            experimental_config=P._ExperimentalConfig(
                profiler_level=P.ProfilerLevel.Level1,
                aic_metrics=P.AiCMetrics.PipeUtilization,
                export_type=[P.ExportType.Text],
            ),
        )
        self.profiler.start()

    def on_step_end(self, args, state, control, **kwargs):
        self.profiler.step()

    def on_train_end(self, args, state, control, **kwargs):
        self.profiler.stop()


if __name__ == "__main__":
    run_exp(callbacks=[Profile()])
