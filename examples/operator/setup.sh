#!/bin/sh
# Makes what there is to look at: a repository with five commits, and a log that goes wrong after the fourth.
set -eu

cd "$(dirname "$0")"
rm -rf repository logs
mkdir repository logs
cd repository
git init --quiet --initial-branch=main

commit() {
    printf '%s\n' "$3" >>service.conf
    git add service.conf
    GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 git -c user.name="$2" -c user.email=team@example.org \
        commit --quiet --message "$4"
}
commit 2026-03-02T08:00:00Z "Ada Moss" "workers = 4" "Start with four workers"
commit 2026-03-02T09:30:00Z "Ben Ould" "timeout = 30" "A timeout"
commit 2026-03-03T07:10:00Z "Ada Moss" "cache = on" "Turn the cache on"
commit 2026-03-03T13:45:00Z "Cleo Park" "timeout = 1" "Fail sooner"
commit 2026-03-04T10:00:00Z "Ben Ould" "workers = 8" "More workers"

cd ../logs
hour=0
while [ $hour -lt 48 ]; do
    day=$(printf '2026-03-%02d' $((3 + hour / 24)))
    at=$(printf '%sT%02d:00:00Z' "$day" $((hour % 24)))
    echo "$at INFO requests=$((1000 + hour * 7)) failed=0"
    if [ $hour -ge 14 ]; then echo "$at ERROR upstream timed out after 1 s"; fi
    hour=$((hour + 1))
done >service.log
