import type { CollectiveOp, DeviceTask } from './des.ts';
import { nodeOf } from './groups.ts';
import { jitter } from './random.ts';

/** Traffic of one collective on one link of a rank. */
interface Link {
  /** group-local rank at the other end */
  peer: number;
  transport: 'HCCS' | 'RDMA';
  bytes: number;
  /** time the link transferred, ns */
  ns: number;
}

/** What a rank's HCCL tasks say about one collective. Elapse = transit + wait + idle. */
export interface CommDetail {
  elapse: number;
  transit: number;
  wait: number;
  synchronization: number;
  idle: number;
  links: Link[];
  /** group-local rank */
  local: number;
}

const TRAFFIC: Record<CollectiveOp, (size: number) => number> = {
  allReduce: (size) => (2 * (size - 1)) / size,
  allGather: (size) => (size - 1) / size,
  broadcast: () => 1,
  batchSendRecv: () => 1,
  alltoallv: (size) => (size - 1) / size,
};

/** Name in tables and lanes, e.g. hcom_allReduce__586_0_1. */
export function commName(task: DeviceTask): string {
  const { op, group, index } = task.collective!;
  return `hcom_${op}__${group.hash.slice(-3)}_${index}_1`;
}

/** Name in communication.json: the same with the group's hash. */
export const commKey = (task: DeviceTask): string => `${commName(task)}@${task.collective!.group.hash}`;

/** Type column: hcom_allReduce_ */
export const commType = (task: DeviceTask): string => `hcom_${task.collective!.op}_`;

/**
 * Splits a collective's elapse the way the master plane shows it: only the wait for the next neighbour counts as Wait,
 * waiting for any other late member appears as Idle.
 */
export function commDetail(task: DeviceTask): CommDetail {
  const collective = task.collective!;
  const { ranks } = collective.group;
  const local = ranks.indexOf(task.rank);
  const elapse = task.end - task.start;
  const links = linksOf(task, local);
  const transit = Math.min(elapse, Math.max(...links.map((link) => link.ns)));
  const neighbour = collective.members.find((member) => member.rank === ranks[(local + 1) % ranks.length]);
  const wait = Math.min(elapse - transit, Math.max(20, (neighbour?.start ?? 0) - task.start));
  return { elapse, transit, wait, synchronization: wait, idle: elapse - transit - wait, links, local };
}

function linksOf(task: DeviceTask, local: number): Link[] {
  const { group, op, fixedNs, movedNs, slowLinks, index } = task.collective!;
  const peers: { peer: number; transport: Link['transport'] }[] = [];
  for (const [peer, rank] of group.ranks.entries()) {
    if (peer === local) continue;
    const sameNode = nodeOf(rank) === nodeOf(task.rank);
    if (!sameNode && rank % 8 !== task.rank % 8) continue;
    peers.push({ peer, transport: sameNode ? 'HCCS' : 'RDMA' });
  }
  const total = task.ownBytes * TRAFFIC[op](group.ranks.length);
  /** Only what moves over a slow link takes longer there. */
  const excess = (peer: number): number =>
    (slowLinks.find(({ ranks }) => ranks.includes(task.rank) && ranks.includes(peer))?.factor ?? 1) - 1;
  return peers.map(({ peer, transport }) => ({
    peer,
    transport,
    bytes: Math.round(total / peers.length / 512) * 512,
    ns: Math.round(((fixedNs + movedNs) * 0.82 + movedNs * excess(group.ranks[peer]!)) * jitter(0.02, index, task.rank, peer, 41)),
  }));
}
