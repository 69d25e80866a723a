/** Role of a process group as parallel_group_info names it. */
export type GroupRole = 'default_group' | 'dp' | 'pp' | 'exp';

/** A process group. */
export interface Group {
  /** communicator name, key of parallel_group_info */
  comm: string;
  role: GroupRole;
  /** global ranks in group order */
  ranks: number[];
  /** unsigned 64-bit hash of the communicator name, as text */
  hash: string;
  /** communication stream id on every member */
  stream: number;
}

/** The 64-bit hash that text exports put after `@`: two 32-bit polynomial hashes side by side. */
export function commHash(comm: string): string {
  let a = 0;
  let b = 0;
  for (let i = 0; i < comm.length; i++) {
    const code = comm.charCodeAt(i);
    a = (Math.imul(a, 29) + code) >>> 0;
    b = (Math.imul(b, 131) + code) >>> 0;
  }
  return ((BigInt(a) << 32n) | BigInt(b)).toString();
}

function group(index: number, role: GroupRole, ranks: number[], stream: number): Group {
  const comm = `group_name_${index}`;
  return { comm, role, ranks, hash: commHash(comm), stream };
}

/** The groups of a job: the default group, for a pipeline job dp inside and pp across the stages, with experts one group of all ranks. */
export function buildGroups(ranks: number, pp: number, hasExperts = false): Group[] {
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const groups = [group(0, 'default_group', all, 4)];
  if (hasExperts) groups.push(group(40, 'exp', all, 8));
  if (pp === 1) return groups;
  const dp = ranks / pp;
  for (let stage = 0; stage < pp; stage++) groups.push(group(3 + stage, 'dp', all.slice(stage * dp, (stage + 1) * dp), 6));
  for (let i = 0; i < dp; i++) groups.push(group(19 + i, 'pp', [i, i + dp], 7));
  return groups;
}

/** The group of the given role that a rank belongs to. */
export function groupOf(groups: Group[], role: GroupRole, rank: number): Group {
  const found = groups.find((candidate) => candidate.role === role && candidate.ranks.includes(rank));
  if (!found) throw new Error(`rank ${rank} is in no ${role} group`);
  return found;
}

/** Cards per server; ranks of one server are linked by HCCS, servers by RDMA. */
export const CARDS_PER_NODE = 8;

/** Server that holds a rank. */
export const nodeOf = (rank: number): number => Math.floor(rank / CARDS_PER_NODE);
