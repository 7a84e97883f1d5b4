//! Random inputs for readers of foreign data: `make fuzz`.
//!
//! `arbtest` drives a target on stable Rust. `ARBTEST_BUDGET_MS` is the time for each target, a tenth of a second in an ordinary
//! test run. A failure prints its seed, and `ARBTEST_SEED` repeats it.

pub use arbtest::arbitrary::{Result, Unstructured};

/// Runs `property` with random data until the time is over. It returns whether the reader accepted the input. The numbers show
/// whether a target still reaches both the acceptance and the refusals of its reader.
#[expect(clippy::print_stdout, reason = "the test harness captures only what `println!` prints")]
pub fn fuzz(target: &str, mut property: impl FnMut(&mut Unstructured<'_>) -> Result<bool>) {
    let (mut runs, mut accepted) = (0_u64, 0_u64);
    let counted = |u: &mut Unstructured<'_>| {
        let is_accepted = property(u)?;
        runs += 1;
        accepted += u64::from(is_accepted);
        Ok(())
    };
    arbtest::arbtest(counted).size_min(256).size_max(4096).run();
    println!("fuzz {target}: {runs} runs without a failure, {accepted} inputs accepted");
}

/// A text that is damaged at one to four places: bytes are removed, repeated, replaced or moved, or one of `pieces` is inserted.
///
/// # Errors
/// The random data is used up.
pub fn damaged(text: &[u8], pieces: &[&[u8]], u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut text = text.to_vec();
    for _ in 0..u.int_in_range(1..=4)? {
        let at = u.choose_index(text.len() + 1)?;
        let end = (at + u.int_in_range(0..=12)?).min(text.len());
        match u.int_in_range(0..=6)? {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, u.choose(pieces)?.iter().copied())),
            2 => drop(text.splice(at..end, u.choose(pieces)?.iter().copied())),
            3 => {
                let again = text[at..end].repeat(u.int_in_range(1..=40)?);
                text.splice(at..at, again);
            }
            4 => {
                let moved: Vec<u8> = text.drain(at..end).collect();
                let to = u.choose_index(text.len() + 1)?;
                text.splice(to..to, moved);
            }
            5 if at < text.len() => text[at] ^= 1 << u.int_in_range(0..=7)?,
            _ => text.truncate(at),
        }
    }
    Ok(text)
}
