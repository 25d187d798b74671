//! How much memory this process and its children may use: the machine's memory or the limit of its container or systemd
//! unit, whichever is lower.

use std::path::{Path, PathBuf};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// The folder that contains `proc` and `sys`; tests use a temporary one.
const ROOT: &str = "/";

/// The usable memory in bytes; `None` if the system does not report it.
pub(super) fn usable_bytes() -> Option<u64> {
    let address_space = getrlimit(Resource::RLIMIT_AS).ok().map(|(soft, _)| soft).filter(|soft| *soft != RLIM_INFINITY);
    [machine_bytes(Path::new(ROOT)), cgroup_bytes(Path::new(ROOT)), address_space].into_iter().flatten().min()
}

/// The memory of the machine.
fn machine_bytes(root: &Path) -> Option<u64> {
    let memory = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    total.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest limit of this process's control groups (cgroups v1 and v2); `None` if there is none.
fn cgroup_bytes(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mount_point = root.join("sys/fs/cgroup");
        if number == "0" && controllers.is_empty() {
            return lowest_limit(&mount_point, path, "memory.max");
        }
        let has_memory = controllers.split(',').any(|controller| controller == "memory");
        has_memory.then(|| lowest_limit(&mount_point.join("memory"), path, "memory.limit_in_bytes")).flatten()
    });
    limits.min()
}

/// The lowest limit of a group and of the groups above it. In a container the path may be the host's, although only the
/// container's own group is mounted, at the top.
fn lowest_limit(mount_point: &Path, path: &str, file: &str) -> Option<u64> {
    let path = PathBuf::from(path.trim_start_matches('/'));
    let groups = path.ancestors().map(|group| mount_point.join(group).join(file));
    // Without a limit the file contains `max`, which is skipped, or in version 1 a number far above the machine's
    // memory.
    groups.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()).min()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    /// A folder with these files, in place of `/`.
    fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_memory_of_the_machine_is_read_in_kib() {
        let machine = root_with(&[("proc/meminfo", "MemTotal:       2048 kB\nMemFree:   7 kB\n")]);
        assert_eq!(machine_bytes(machine.path()), Some(2 << 20));
        assert_eq!(machine_bytes(root_with(&[]).path()), None);
    }

    #[test]
    fn the_lowest_limit_of_nested_cgroups_v2_counts() {
        let nested = root_with(&[
            ("proc/self/cgroup", "0::/system.slice/hotline.service\n"),
            ("sys/fs/cgroup/system.slice/hotline.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "536870912\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ]);
        assert_eq!(cgroup_bytes(nested.path()), Some(512 << 20));
        let container = root_with(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "268435456\n")]);
        assert_eq!(cgroup_bytes(container.path()), Some(256 << 20));
        let unlimited = root_with(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "max\n")]);
        assert_eq!(cgroup_bytes(unlimited.path()), None);
    }

    #[test]
    fn the_limit_of_the_memory_controller_counts_in_cgroups_v1() {
        let nested = root_with(&[
            ("proc/self/cgroup", "7:cpu,cpuacct:/docker/a\n5:memory:/docker/a\n0::/\n"),
            ("sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "536870912\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(cgroup_bytes(nested.path()), Some(512 << 20));
        // In a container its own group is mounted at the top.
        let container = root_with(&[
            ("proc/self/cgroup", "5:memory:/docker/a\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
        ]);
        assert_eq!(cgroup_bytes(container.path()), Some(256 << 20));
    }
}
