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


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, default=16, help="sequences per card and step")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--profile", metavar="FOLDER", help="write one short profile per rank")
    return parser.parse_args()


def train(args, model, loader, optimizer, scheduler, device, profiler):
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORED)
    model.train()
    for step, (tokens, labels) in enumerate(loader):
        tokens, labels = tokens.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.bfloat16):
            logits = model(tokens)
            loss = criterion(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        report(step, loss.item())
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

    model = DDP(Bert().to(device), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=2000)

    with profiled(args.profile) as profiler:
        train(args, model, loader, optimizer, scheduler, device, profiler)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
