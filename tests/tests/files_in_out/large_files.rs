//! Tests that large files pass through Lockhouse in pieces: the memory of the supervisor stays bounded, and nothing of
//! them reaches the answer.

use lockhouse_tests::Lockhouse;

/// The highest resident memory of the supervisor that a test accepts, in KiB. Without files, it is about 40 MiB in a debug
/// build.
const PEAK_KIB_MAX: u64 = 120 * 1024;

fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_hundred_mebibytes_in_and_fifty_out_pass_in_pieces() {
    let lockhouse = Lockhouse::outside_tmp()
        .config(
            "[limits]\nmemory_mib = 1024\ntimeout_seconds = 120\ncpu_seconds = 120\n[results]\nfiles_mib = 256\n\
             [servers.files]\nread = [\"~/data\"]\nfile_mib = 100\n",
        )
        .policy(super::FILES_POLICY);
    let path = lockhouse.file("home/data/large.bin", b"");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    let session = lockhouse.serve().await;
    let code = format!(
        "with open({:?}, 'rb') as f: data = f.read()\nwith open('/out/half.bin', 'wb') as f: f.write(data[:len(data) // 2])\nlen(data)",
        path.display().to_string()
    );
    let answer = session.run_code("python", &code).await;
    assert_eq!(answer["value"], 100 * 1024 * 1024, "{answer}");
    assert_eq!(answer["files"][0]["bytes"], 50 * 1024 * 1024, "{answer}");
    let length = answer.to_string().len();
    assert!(length < 2_000, "{length} bytes in the answer");
    let peak = peak_kib(session.pid());
    println!("peak of the supervisor: {peak} KiB");
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
    let handle = answer["files"][0]["handle"].as_str().unwrap();
    let saved = lockhouse.run(&["result", handle, "--out", "saved"]);
    assert_eq!(saved.status, Some(0), "{}", saved.stderr);
    assert_eq!(lockhouse.path("home/saved/half.bin").metadata().unwrap().len(), 50 * 1024 * 1024);
    assert!(peak_kib(session.pid()) < PEAK_KIB_MAX);
}
