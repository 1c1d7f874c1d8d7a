#!/usr/bin/env bash
# Boots a real systemd with the units of this repository, and runs check.sh in it.
#
# usage: tests/systemd/boot.sh [--emulated] BINARY [NEXT]
#
# NEXT is a build of the next protocol version (cargo's feature `next-protocol`): the upgrade from BINARY to it is checked, too.
#
# The system boots in new namespaces of this kernel, or with --emulated in a machine that QEMU emulates, with the release's own
# kernel: that one has all controllers of cgroup v2. It needs no KVM and about ten times as long.
#
# Exit status: 0 all checks passed, 1 a check failed, 77 not possible on this machine (the last line has the reason).
# It needs root, debootstrap with a Debian mirror, and a cgroup v2 hierarchy that root may change (--emulated: qemu-system-x86_64,
# mke2fs and debugfs instead of the hierarchy). It shares no folder with the host: systemd's own services (tmpfiles, sysctl) change
# nothing outside.
#
# VM_SYSTEM_BASE names the folder in which the Debian systems are kept between runs, one for each release and way (default: a new
# temporary one), VM_SYSTEM_RELEASE the release (default: bookworm, with systemd 252 and Linux 6.1;
# --emulated: trixie, with systemd 257 and Linux 6.12).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
units=$here/../../systemd
# Seconds; a run takes about forty, an emulated one some minutes.
longest=600
emulated=
release=bookworm
if [ "${1:-}" = --emulated ]; then emulated=1 longest=1800 release=trixie; shift; fi
release=${VM_SYSTEM_RELEASE:-$release}

cannot() {
    printf 'SKIPPED: booted systemd: %s\n' "$1"
    exit 77
}

binary=$(realpath "${1:?usage: boot.sh [--emulated] BINARY [NEXT]}")
[ -x "$binary" ] || { echo "$binary is no executable file" >&2; exit 1; }
next=${2:+$(realpath "$2")}
[ -z "$next" ] || [ -x "$next" ] || { echo "$next is no executable file" >&2; exit 1; }
[ "$(id -u)" = 0 ] || cannot "needs root"
tools=(debootstrap)
if [ "$emulated" ]; then tools+=(qemu-system-x86_64 mke2fs debugfs); else tools+=(unshare pivot_root findmnt); fi
for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || cannot "no $tool on this machine"
done

work=$(mktemp -d)
group=
cleanup() {
    # Empty: its processes ended with the pid namespace.
    if [ "$group" ]; then find "$group" -depth -type d -exec rmdir {} + || true; fi
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
if [ ! "$emulated" ]; then
    cgroups=$(findmnt --noheadings --list --first-only --types cgroup2 --output TARGET) || cannot "no cgroup v2 hierarchy is mounted"
    mkdir "$cgroups/vm-system-boot-$$" 2>/dev/null || cannot "$cgroups cannot be changed"
    group=$cgroups/vm-system-boot-$$
fi

base=${VM_SYSTEM_BASE:-$work}/$release${emulated:+-emulated}
mkdir -p "$base"
if [ ! -e "$base/.complete" ]; then
    [ -z "$(ls -A "$base" 2>/dev/null)" ] || { echo "$base is not empty and not a system of an earlier run" >&2; exit 1; }
    packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd
    if [ "$emulated" ]; then packages+=,linux-image-cloud-amd64; fi
    debootstrap --variant=minbase --include="$packages" "$release" "$base" >"$work/debootstrap.log" 2>&1 \
        || cannot "debootstrap failed: $(tail -n 1 "$work/debootstrap.log")"
    touch "$base/.complete"
fi

# The system: as an administrator installs the product, plus two users' folders and the service that runs the checks.
root=$work/root
cp -a --reflink=auto "$base" "$root"
install -m 0755 "$binary" "$root/usr/bin/vm-system"
install -m 0644 -D "$units/vm-system.service" -t "$root/etc/systemd/system"
install -m 0644 -D "$units/vm-files@.socket" "$units/vm-files@.service" -t "$root/etc/systemd/system"
install -m 0644 -D "$units/vm-system-egress.socket" "$units/vm-system-egress@.service" -t "$root/etc/systemd/system"
install -m 0644 -D "$units/vm-system-http.socket" -t "$root/etc/systemd/system"
install -m 0644 -D "$units/user/vm-system.service" -t "$root/etc/systemd/user"
install -m 0644 -D "$units/sysusers.d/vm-system.conf" -t "$root/usr/lib/sysusers.d"
install -m 0644 -D "$units/tmpfiles.d/vm-system.conf" -t "$root/usr/lib/tmpfiles.d"
if [ -n "$next" ]; then
    install -m 0755 -D "$next" "$root/usr/local/lib/vm-system-next"
    install -m 0644 "$here/upgrade.sh" "$root/usr/local/lib/vm-system-upgrade.sh"
fi
install -m 0755 "$here/check.sh" "$root/usr/local/bin/vm-system-check"
chroot "$root" systemd-sysusers
chroot "$root" useradd --create-home --shell /bin/bash --groups vm-system alice
cat >"$root/etc/systemd/system/vm-system-check.service" <<'UNIT'
[Unit]
Description=checks of vm-system
After=multi-user.target
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
ExecStart=/usr/local/bin/vm-system-check
StandardOutput=file:/check.log
StandardError=inherit
ExecStopPost=/bin/sh -c 'echo $$EXIT_STATUS >/check.status'
TimeoutStartSec=1500
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../vm-system-check.service "$root/etc/systemd/system/multi-user.target.wants/"

# In new namespaces of this kernel.
in_namespaces() {
    echo "$BASHPID" >"$group/cgroup.procs"
    exec timeout --kill-after=10 "$longest" unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child --propagation private \
        bash -euc '
        cd "$1"
        mount --bind . .
        cd "$1"
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount -t cgroup2 -o rw,nosuid,nodev,noexec cgroup2 sys/fs/cgroup
        mount -t tmpfs -o mode=755 tmpfs dev
        for device in null zero full random urandom tty; do
            touch "dev/$device"
            mount --bind "/dev/$device" "dev/$device"
        done
        mkdir dev/shm dev/pts
        mount -t tmpfs tmpfs dev/shm
        mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
        ln -s pts/ptmx dev/ptmx
        ln -s /proc/self/fd dev/fd
        mount -t tmpfs -o mode=755 tmpfs run
        mkdir .old
        pivot_root . .old
        umount -l /.old
        exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system \
            --log-target=console --show-status=0 systemd.unit=multi-user.target
        ' boot "$root"
}

# In an emulated machine. Its disk is a file, from which the results are read.
in_machine() {
    local disk=$work/disk
    truncate --size=4G "$disk"
    mke2fs -q -F -t ext4 -d "$root" "$disk"
    timeout --kill-after=10 "$longest" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -display none -no-reboot \
        -serial stdio -monitor none -nic none -drive "file=$disk,format=raw,if=virtio,cache=unsafe" \
        -kernel "$root"/vmlinuz -initrd "$root"/initrd.img \
        -append 'root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=0 systemd.unit=multi-user.target'
    debugfs -R 'cat /check.log' "$disk" 2>/dev/null >"$root/check.log"
    debugfs -R 'cat /check.status' "$disk" 2>/dev/null >"$root/check.status"
    [ "$(cat "$root/check.status")" = 0 ]
}

status=0
if [ "$emulated" ]; then way=in_machine; else way=in_namespaces; fi
("$way") >"$work/boot.log" 2>&1 </dev/null || status=$?

if [ -e "$root/check.log" ]; then cat "$root/check.log"; fi
if [ "$status" != 0 ]; then
    printf '==== the manager ended with %s; the end of its log:\n' "$status"
    tail -n 40 "$work/boot.log"
    exit 1
fi
