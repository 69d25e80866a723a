#!/bin/sh
# What the image is made of. The Dockerfile runs this, and so does deploy/smoke.sh on a plain Debian without Docker:
#
#     sh deploy/image-steps.sh SOURCE TARGET
#
# Needs Node and npm. SOURCE is a clone and is not changed, TARGET must not exist yet.
set -eu
source=$(cd "$1" && pwd)
target=$2
[ ! -e "$target" ] || { echo "image-steps: $target exists" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Named one by one, so that nothing else of a working folder ends up in the image.
for path in package.json package-lock.json tsconfig.json tsconfig.build.json LICENSE app.yml bin schema src templates docs/rules docs/zh/rules scripts/sbom.mjs; do
  [ -e "$source/$path" ] || continue
  mkdir -p "$work/$(dirname "$path")"
  cp -R "$source/$path" "$work/$path"
done

cd "$work"
# Exactly the lock file; no script of a dependency is run, the add-ons come built.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent build
npm prune --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
# Declarations and source maps are for people who build upon a package.
find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -type f -exec rm -f {} +
node scripts/sbom.mjs sbom.cdx.json

mkdir -p "$target"
# The sources stay behind: without them the built modules are run.
for path in package.json LICENSE app.yml bin schema templates docs dist node_modules sbom.cdx.json; do cp -R "$path" "$target/$path"; done
# Owned by whoever builds, readable by everybody, writable by nobody else.
chmod -R u=rwX,go=rX "$target"
