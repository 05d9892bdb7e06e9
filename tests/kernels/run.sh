#!/bin/sh
# Runs Lockhouse on the kernels that users have: Debian 12 and 13, Ubuntu 24.04, each in QEMU, from what prepare.sh made.
#   run.sh [KERNEL...]     CHECKS=doctors,bounds narrows the checks (see checks.py), ACCELERATOR=tcg does without KVM
# Prints the findings for each kernel and a table at the end; fails if a check fails, or a kernel takes longer than LIMIT seconds.
# Needs qemu-system-x86. Minutes with KVM; without, an hour or two, of which the tables of native attacks are nearly all.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

kernels=${*:-debian12 ubuntu2404 debian13}
# Distribution kernels do not boot on a /dev/kvm that is emulated without hardware support.
if [ -w /dev/kvm ] && grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo; then usual=kvm; else usual=tcg; fi
accelerator=${ACCELERATOR:-$usual}
# An emulated processor counts its instructions as time, so that no time limit of a test depends on how busy this host is. Its kernel
# leaves out what protects it from faults of real processors.
processors="-cpu host -smp 2" options=
[ "$accelerator" = kvm ] || { processors="-cpu max -smp 1 -icount shift=1,sleep=off" options=mitigations=off; }

command -v qemu-system-x86_64 >/dev/null 2>&1 || stop "QEMU is missing. Install it with: apt-get install qemu-system-x86"
[ -s "$build/initramfs.cpio.gz" ] || stop "nothing to boot yet; run tests/kernels/prepare.sh"

for kernel in $kernels; do
    echo "== $kernel: $(cat "$build/$kernel/version") ($accelerator)"
    # Unquoted, because the shell must split the options into words.
    # shellcheck disable=SC2086
    timeout "${LIMIT:-7200}" qemu-system-x86_64 -accel "$accelerator" $processors -m 4096 -nodefaults \
        -no-user-config -display none -serial stdio -no-reboot -kernel "$build/$kernel/vmlinuz" \
        -initrd "$build/initramfs.cpio.gz" </dev/null 2>&1 \
        -append "console=ttyS0 loglevel=1 panic=-1 kernel=$kernel checks=${CHECKS:-} $options" |
        sed -u 's/\r$//' | tee "$build/$kernel/log" | sed -un 's/^.*@@|//p' || true
done

for kernel in $kernels; do
    sed -n "s/^.*@@|/$kernel|/p" "$build/$kernel/log"
    # A kernel whose checks did not reach their end has failed.
    grep -q '@@|end|' "$build/$kernel/log" || echo "$kernel|the end was reached|FAIL|see $build/$kernel/log"
done | awk -F'|' -v kernels="$kernels" '
    $3 == "info" { next }
    !($2 in seen) { seen[$2] = 1; order[++count] = $2 }
    { verdict[$2, $1] = $3; if ($3 == "FAIL") { failed = 1; faults = faults "\n" $1 ": " $2 ": " $4 } }
    END {
        columns = split(kernels, name, " ")
        printf "\n%-60s", "check"
        for (i = 1; i <= columns; i++) printf " %-10s", name[i]
        for (row = 1; row <= count; row++) {
            printf "\n%-60s", order[row]
            for (i = 1; i <= columns; i++) printf " %-10s", ((order[row], name[i]) in verdict) ? verdict[order[row], name[i]] : "-"
        }
        print "\n" faults
        exit failed || count == 0
    }'
