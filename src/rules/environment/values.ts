type Env = Readonly<Record<string, string>>;

/** Variables that change how a rank runs. Names of places (hosts, interfaces, folders, device numbers) differ by right. */
const SETTING =
  /^(ACL|ACLNN|ASCEND|COMBINED|CPU_AFFINITY|HCCL|HCOMM|HOST_CACHE|INF_NAN|MKL_NUM|MULTI_STREAM|NPU|OMP_NUM|P2P_HCCL|PER_STREAM|PYTORCH|STREAMS_PER|TASK_QUEUE|TORCH)_/;
const PLACE =
  /(_IP|_IFNAME|_PATH|_DIR|_FILE|_PORT|_PORT_RANGE|_ID|_DEVICES|_RANK|RANK_SIZE|_ADDR|_HOST|_NODE)$|^TORCHELASTIC_|^NPU_VISIBLE/;

export interface Difference {
  readonly name: string;
  /** Values, the most common first, with the positions of the environments that hold it. */
  readonly values: readonly (readonly [value: string, at: readonly number[]])[];
}

/** Settings that not all environments agree on, of those that record them. '' is unset. */
export function differences(envs: readonly Env[]): Difference[] {
  const names = new Set(envs.flatMap((env) => Object.keys(env)).filter((name) => SETTING.test(name) && !PLACE.test(name)));
  return [...names].sort().flatMap((name): Difference[] => {
    const known = envs.flatMap((env, at) => (env[name] === undefined ? [] : [{ value: env[name].trim(), at }]));
    const values = [...Map.groupBy(known, (k) => k.value)]
      .map(([value, list]) => [value, list.map((k) => k.at)] as const)
      .sort(([, a], [, b]) => b.length - a.length || a[0]! - b[0]!);
    return values.length < 2 ? [] : [{ name, values }];
  });
}
