#!/usr/bin/env bash
# Install the Debian packages that some tests use, where they are missing and can be installed.
# Without them those tests skip and say so.
set -u
here=$(dirname "$0")
command -v dpkg-query >/dev/null || { echo "not a Debian system: tests that need $(tr '\n' ' ' < "$here/debian.txt")will skip"; exit 0; }
missing=()
while read -r name; do
  [ -z "$name" ] && continue
  dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
done < "$here/debian.txt"
[ ${#missing[@]} -eq 0 ] && exit 0
run=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then run=(sudo -n); else echo "to run all tests: sudo apt-get install ${missing[*]}"; exit 0; fi
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null && "${run[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null \
  || echo "could not install ${missing[*]}: tests that need them will skip"
exit 0
