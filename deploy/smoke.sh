#!/bin/sh
# Takes the steps of the image on this machine and tries the result as a container would run it: not as root, with a root file system that is
# read-only and holds nothing but the system's own folders. Needs no Docker; where user namespaces are not allowed, it says so and tries it
# without them.
#
#     sh deploy/smoke.sh
set -eu

# --- in the container -------------------------------------------------------------------------------------------------------------------
if [ "${1:-}" = try ]; then
  app=$2 example=$3 data=$4
  fail() { echo "smoke: $1" >&2; [ ! -f "$data/log" ] || tail -5 "$data/log" >&2; exit 1; }
  if [ "${SMOKE_ISOLATED:-}" = 1 ]; then
    [ "$(id -u)" != 0 ] || fail 'runs as root'
    for path in / /app /usr /etc; do ! touch "$path/smoke" 2>/dev/null || fail "$path can be written"; done
    [ ! -e /work ] && [ ! -e /root ] || fail 'sees folders of the machine'
  fi
  [ ! -e "$app/src" ] && [ ! -e "$app/node_modules/vitest" ] || fail 'holds sources or tools of development'
  export NODE_ENV=production NPU_ADVISOR_DATA_DIR="$data/store" TMPDIR="${TMPDIR:-/tmp}"
  advise="$SMOKE_NODE $app/bin/npu-advise.mjs"
  $advise --help >/dev/null || fail 'the command does not start'
  $advise explain dataloader-stall | grep -q 'What it measures' || fail 'explain finds no page'
  $advise analyze "$example" --format json --out "$data/report.json" || fail 'the example is not analysed'
  $SMOKE_NODE -e '
    const { findings, verdict } = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
    if (!findings.some(({ rule }) => rule === "dataloader-stall")) throw new Error(`found ${findings.map(({ rule }) => rule)}`);
    console.log(`smoke: the example says "${verdict.text}"`);
  ' "$data/report.json" || fail 'the example has no finding'
  $advise analyze "$example" --format html --out "$data/report.html" || fail 'no page of the example'

  $SMOKE_NODE -e '
    const { privateKey } = require("crypto").generateKeyPairSync("rsa", { modulusLength: 2048 });
    require("fs").writeFileSync(process.argv[1], privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  ' "$data/key.pem"
  export APP_ID=1 PRIVATE_KEY_PATH="$data/key.pem" WEBHOOK_SECRET=smoke-smoke-smoke-smoke-smoke-smoke GHE_HOST=127.0.0.1:9 GHE_PROTOCOL=http
  # Free ones; the log says which.
  export PORT=0 NPU_ADVISOR_METRICS_PORT=0
  $advise serve >"$data/log" 2>&1 &
  server=$!
  get() { $SMOKE_NODE -e 'fetch(process.argv[1]).then(async (r) => { console.log(await r.text()); process.exit(r.ok ? 0 : 1); }, () => process.exit(1))' "$1"; }
  trap 'kill -KILL "$server" 2>/dev/null || :' EXIT
  tries=0
  until grep -q '"msg":"server started"' "$data/log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 240 ] && kill -0 "$server" 2>/dev/null || fail 'the server does not start'
    sleep 0.5
  done
  url=$(sed -n 's/.*"url":"\([^"]*\)","metrics":"[^"]*".*/\1/p' "$data/log")
  metrics=$(sed -n 's/.*"metrics":"\([^"]*\)".*/\1/p' "$data/log")
  [ "$(get "$url/healthz")" = ok ] || fail '/healthz does not answer'
  [ "$(get "$url/readyz")" = ready ] || fail '/readyz does not say ready'
  get "$metrics/metrics" >"$data/metrics" || fail '/metrics does not answer'
  grep -q '^npu_advisor_ready 1$' "$data/metrics" || fail '/metrics does not say ready'
  rss=$(($(awk '/^VmRSS/ { print $2 }' "/proc/$server/status") / 1024))
  echo "smoke: the server answers, ${rss} MB resident"
  [ "$rss" -le 1024 ] || fail 'it takes more than 1 GB when idle'
  kill -TERM "$server"
  wait "$server" || fail 'it does not end well'
  echo 'smoke: it ended on SIGTERM'
  exit 0
fi

# --- as root of a user namespace: builds the file system and leaves for it --------------------------------------------------------------
if [ "${1:-}" = isolate ]; then
  app=$2 example=$3 root=$4 script=$5
  mount -t tmpfs -o size=16m,mode=755 tmpfs "$root"
  mkdir "$root/app" "$root/example" "$root/data" "$root/tmp" "$root/old" "$root/node-bin"
  for path in /bin /dev /etc /lib /lib64 /proc /sbin /usr; do
    if [ -L "$path" ]; then ln -s "$(readlink "$path")" "$root$path"
    elif [ -d "$path" ]; then mkdir "$root$path" && mount --rbind "$path" "$root$path"; fi
  done
  mount --bind "$app" "$root/app"
  mount --bind "$example" "$root/example"
  mount --bind "$(dirname "$SMOKE_NODE")" "$root/node-bin"
  cp "$script" "$root/smoke.sh"
  mount -t tmpfs -o size=1g,mode=777 tmpfs "$root/data"
  mount -t tmpfs -o size=64m,mode=777 tmpfs "$root/tmp"
  cd "$root"
  pivot_root . old
  umount -l /old
  for path in /app /example /node-bin /usr /etc /bin /lib /lib64 /sbin; do
    [ -L "$path" ] || [ ! -d "$path" ] || mount -o remount,bind,ro "$path"
  done
  mount -o remount,ro /
  # A user without a name and without any right: its number is that of nobody's files here.
  SMOKE_ISOLATED=1 SMOKE_NODE=/node-bin/node TMPDIR=/tmp HOME=/data exec unshare -U --map-user=1000 --map-group=1000 \
    setpriv --no-new-privs sh /smoke.sh try /app /example /data
fi

# --- on the machine ---------------------------------------------------------------------------------------------------------------------
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The Node of the clone where there is one: the machine's own may be older.
SMOKE_NODE=$(command -v node)
[ ! -x "$here/node_modules/node/bin/node" ] || SMOKE_NODE=$here/node_modules/node/bin/node
SMOKE_NODE=$(readlink -f "$SMOKE_NODE")
export SMOKE_NODE
sh "$here/deploy/image-steps.sh" "$here" "$work/app"
echo "smoke: the image holds $(du -sm "$work/app" | cut -f1) MB"
"$SMOKE_NODE" "$here/lab/simulator/main.ts" --ranks 2 --steps 3 --fault slow-loader --out "$work/example" >/dev/null
mkdir "$work/root" "$work/data"
if why=$(unshare -rm sh -c 'mount -t tmpfs tmpfs "$0" && unshare -U --map-user=1000 true' "$work/root" 2>&1); then
  unshare -rm sh "$0" isolate "$work/app" "$work/example" "$work/root" "$here/deploy/smoke.sh"
  echo 'smoke: passed, not as root and on a read-only root'
else
  echo "smoke: SKIPPED the read-only root and the user without rights, user namespaces are not allowed here: $why"
  sh "$0" try "$work/app" "$work/example" "$work/data"
  echo 'smoke: passed, without isolation'
fi
