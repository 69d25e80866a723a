"""Pretrains BERT:  torchrun --nproc_per_node=8 train.py --data corpus/tokens.bin"""

import argparse
import os

import torch
import torch.distributed as dist
import torch_npu
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from bert.data import IGNORED, MaskedTokens
from bert.model import Bert
from bert.profiling import profiled

# All batches have one shape: compile the operators for it once.
torch_npu.npu.set_compile_mode(jit_compile=True)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, default=8, help="sequences per card and micro batch")
    parser.add_argument("--accumulation", type=int, default=4, help="micro batches per optimizer step")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--profile", metavar="FOLDER", help="write one short profile per rank")
    return parser.parse_args()


def train(args, model, loader, optimizer, scheduler, device, profiler):
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORED)
    model.train()
    for i, (tokens, labels) in enumerate(loader):
        tokens, labels = tokens.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if i % args.accumulation == 0:
            optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.bfloat16):
            logits = model(tokens)
            loss = criterion(logits.flatten(0, 1), labels.flatten()) / args.accumulation
        loss.backward()
        if (i + 1) % args.accumulation == 0:
            step = i // args.accumulation
            report(step, loss.item() * args.accumulation)
            optimizer.step()
            scheduler.step()
            if profiler is not None:
                profiler.step()
            if step + 1 == args.steps:
                return


def report(step, loss):
    if dist.get_rank() == 0 and step % 50 == 0:
        print(f"step {step} loss {loss:.4f}", flush=True)


def main():
    args = parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.npu.set_device(local_rank)
    dist.init_process_group("hccl")
    device = torch.device("npu", local_rank)

    dataset = MaskedTokens(args.data)
    sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
    loader = DataLoader(dataset, args.batch, sampler=sampler, num_workers=4, pin_memory=True, drop_last=True)

    model = DDP(Bert().to(device), device_ids=[local_rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=2000)

    with profiled(args.profile) as profiler:
        train(args, model, loader, optimizer, scheduler, device, profiler)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
