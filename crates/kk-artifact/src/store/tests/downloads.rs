//! Downloads that are refused, interrupted, changed, wrong or cancelled.

use super::*;

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for (code, reason) in
        [(404, "does not exist (404)"), (403, "answers 403 Forbidden"), (410, "answers 410 Gone")]
    {
        let bench = Bench::plain().await;
        bench.server.put(KUBEADM, b"x");
        bench.server.faults([Fault::Status(StatusCode::from_u16(code).unwrap())]);
        let error = bench.fetch(&bench.kubeadm(b"x")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{}{KUBEADM} {reason}", bench.server.base()));
        assert!(error.hint().unwrap().contains("mirror"));
        assert_eq!(bench.ranges().len(), 1);
        assert!(bench.files().is_empty());
    }
}

#[tokio::test]
async fn a_broken_server_is_tried_again_and_then_given_up() {
    let mut bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"program");
    let broken = Fault::Status(StatusCode::BAD_GATEWAY);
    bench.server.faults([broken.clone(), broken.clone()]);
    let artifact = bench.kubeadm(b"program");
    bench.fetch(&artifact).await.unwrap();
    assert_eq!(bench.ranges().len(), 3);
    let mut states = std::iter::from_fn(|| bench.news.try_recv().ok()).map(|news| news.state);
    assert!(matches!(states.next(), Some(ProgressState::Retrying { reason, .. }) if reason.contains("502")));
    assert_eq!(states.last(), Some(ProgressState::Finished));

    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"program");
    bench.server.faults([broken.clone(), broken.clone(), broken]);
    let error = bench.fetch(&artifact_at(&bench, &artifact)).await.unwrap_err().to_string();
    assert!(error.ends_with("the server answers 502 Bad Gateway"), "{error}");
    assert_eq!(bench.ranges().len(), 3);
}

/// The same artifact behind another bench's server.
fn artifact_at(bench: &Bench, artifact: &Artifact) -> Artifact {
    Artifact { address: bench.kubeadm(b"").address, ..artifact.clone() }
}

#[tokio::test]
async fn a_cut_download_goes_on_where_it_ended() {
    let mut bench = Bench::plain().await;
    let bytes = program(3_000_000);
    bench.server.put(KUBEADM, &bytes);
    // More interruptions than attempts: each attempt makes progress, so none of them counts.
    bench.server.faults([Fault::CutAfter(1_000_000), Fault::CutAfter(900_000), Fault::CutAfter(1_500_000)]);
    // The second and third fault return the whole file again, like a server without ranges.
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    let tag = Some(format!("\"{}\"", sum_of(&bytes)));
    let requests = bench.server.requests();
    let starts: Vec<_> = requests.iter().map(|seen| seen.range.as_deref()).collect();
    assert_eq!(starts, [None, Some("bytes=1000000-"), Some("bytes=900000-"), Some("bytes=1500000-")]);
    assert!(requests[1..].iter().all(|seen| seen.if_range == tag), "{requests:?}");
    let started: Vec<_> = std::iter::from_fn(|| bench.news.try_recv().ok())
        .filter_map(|news| {
            if let ProgressState::Started { done, total } = news.state { Some((done, total)) } else { None }
        })
        .collect();
    let total = Some(3_000_000);
    assert_eq!(started, [(0, total), (0, total), (0, total), (1_500_000, total)]);
    assert_eq!(bench.files(), ["kubeadm"]);
}

#[tokio::test]
async fn a_server_without_ranges_is_read_from_the_beginning() {
    let bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([Fault::CutAfter(40_000), Fault::NoRanges]);
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
}

#[tokio::test]
async fn another_range_than_the_one_asked_for_is_not_taken() {
    let bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([
        Fault::CutAfter(40_000),
        Fault::Range(10_000..60_000),
        Fault::CutAfter(50_000),
        Fault::Range(60_000..100_000),
    ]);
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    let range = |from: usize| Some(format!("bytes={from}-"));
    assert_eq!(bench.ranges(), [None, range(40_000), None, range(50_000), None]);
}

#[tokio::test]
async fn a_server_may_give_the_rest_in_pieces() {
    let bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([
        Fault::CutAfter(40_000),
        Fault::Range(40_000..60_000),
        Fault::Range(60_000..70_000),
    ]);
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    let range = |from: usize| Some(format!("bytes={from}-"));
    assert_eq!(bench.ranges(), [None, range(40_000), range(60_000), range(70_000)]);
}

#[tokio::test]
async fn a_tag_that_a_power_cut_made_unreadable_is_not_sent() {
    let bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    fs::create_dir_all(bench.part().parent().unwrap()).unwrap();
    fs::write(bench.part(), &bytes[..50_000]).unwrap();
    fs::write(bench.part().with_extension("part.tag"), [0; 8]).unwrap();
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert_eq!(bench.ranges(), [Some("bytes=50000-".to_owned())]);
    assert_eq!(bench.files(), ["kubeadm"]);
}

#[tokio::test]
async fn a_part_that_somebody_else_writes_to_is_never_taken_for_the_file() {
    let mut bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    let (part, artifact) = (bench.part(), bench.kubeadm(&bytes));
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, &bytes[..50_000]).unwrap();
    let disturb = async {
        while let Some(news) = bench.news.recv().await {
            if matches!(news.state, ProgressState::Started { done: 50_000, .. }) {
                let mut file = fs::File::options().append(true).open(&part).unwrap();
                return std::io::Write::write_all(&mut file, b"foreign").unwrap();
            }
        }
    };
    let cancel = CancellationToken::new();
    let (files, ()) = tokio::join!(bench.store.fetch(&artifact, &bench.progress, &cancel), disturb);
    assert_eq!(fs::read(&files.unwrap()[0].path).unwrap(), bytes);
}

#[tokio::test]
async fn a_part_from_an_earlier_run_is_used_only_if_it_fits() {
    let bytes = program(100_000);
    let half = &bytes[..50_000];
    let foreign = vec![7; 50_000];
    let too_long = vec![7; 200_000];
    let resumed = Some("bytes=50000-".to_owned());
    for (part, requests) in [
        (half, vec![resumed.clone()]),
        (&bytes[..], vec![]),
        (&foreign[..], vec![resumed, None]),
        (&too_long[..], vec![Some("bytes=200000-".to_owned()), None]),
    ] {
        let bench = Bench::plain().await;
        bench.server.put(KUBEADM, &bytes);
        fs::create_dir_all(bench.part().parent().unwrap()).unwrap();
        fs::write(bench.part(), part).unwrap();
        let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
        assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
        assert_eq!(bench.ranges(), requests);
        assert_eq!(bench.files(), ["kubeadm"]);
    }
}

#[tokio::test]
async fn a_file_that_changed_in_between_is_read_from_the_beginning() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, &program(80_000));
    bench.server.faults([Fault::CutAfter(30_000), Fault::Status(StatusCode::NOT_FOUND)]);
    let bytes = vec![9; 90_000];
    let artifact = bench.kubeadm(&bytes);
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::NotFound { .. })));
    assert_eq!(fs::metadata(bench.part()).unwrap().len(), 30_000);
    bench.server.put(KUBEADM, &bytes);
    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert_eq!(bench.ranges().last(), Some(&Some("bytes=30000-".to_owned())));
}

#[tokio::test]
async fn a_wrong_sum_is_an_error_after_one_more_try_and_leaves_nothing() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"something else");
    let artifact = bench.kubeadm(b"program");
    let error = bench.fetch(&artifact).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}{KUBEADM} has the wrong SHA-256: expected {}, got {}",
            bench.server.base(),
            sum_of(b"program"),
            sum_of(b"something else")
        )
    );
    assert_eq!(bench.ranges(), [None, None]);
    assert!(bench.files().is_empty(), "{:?}", bench.files());
    assert_eq!(bench.store.cached(&artifact).await, None);
}

#[tokio::test]
async fn cancelling_keeps_what_has_come() {
    let mut bench = Bench::plain().await;
    let bytes = program(4_000_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([Fault::StopAfter(2_000_000)]);
    let artifact = bench.kubeadm(&bytes);
    let cancel = CancellationToken::new();
    let watch = async {
        while let Some(news) = bench.news.recv().await {
            if matches!(news.state, ProgressState::Advanced { done } if done > 1_000_000) {
                return cancel.cancel();
            }
        }
    };
    let (result, ()) = tokio::join!(bench.store.fetch(&artifact, &bench.progress, &cancel), watch);
    assert!(matches!(result, Err(Error::Cancelled)));
    let kept = fs::metadata(bench.part()).unwrap().len();
    assert!(kept >= 500_000, "{kept}");
    assert_eq!(bench.store.cached(&artifact).await, None);

    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert!(bench.ranges()[1].is_some());
}
