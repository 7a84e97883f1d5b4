//! A host whose side of the conversation is not kk's: it is given up with an error about it, and other hosts work on.

use std::time::{Duration, Instant};

use kk_connector::Error;

use crate::ssh::{connect::try_it, sshd::Sshd};

#[tokio::test]
async fn a_host_that_floods_is_given_up_and_another_one_works_on() {
    for forced in ["yes", "cat /dev/zero", "exec yes >&2"] {
        println!("case {forced}");
        let (bad, good) = (Sshd::start(&format!("ForceCommand {forced}")), Sshd::start(""));
        let began = Instant::now();
        let (flooded, worked) = tokio::join!(try_it(bad.config()), try_it(good.config()));
        let error = flooded.unwrap_err();
        assert!(matches!(&error, Error::Lost { host, .. } if host == "node1"), "{error:?}");
        assert!(error.to_string().contains("prints without end"), "{error}");
        assert_eq!(worked.unwrap(), "in\n");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
