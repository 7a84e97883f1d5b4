//! Validity of a certificate, and the rule for its renewal.

use time::OffsetDateTime;
use x509_parser::pem::parse_x509_pem;

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// Start and end of the validity of a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    begins: i64,
    ends: i64,
}

/// Consequence of the time that a certificate remains valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// Nothing.
    Good,
    /// The user is informed how long it is valid.
    Noted,
    /// It is renewed.
    Due,
    /// It is no longer accepted.
    Expired,
}

impl Validity {
    /// The validity of the first certificate in a PEM text; `None` if no certificate can be read.
    pub(crate) fn of_pem(text: &[u8]) -> Option<Self> {
        let (_, pem) = parse_x509_pem(text).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let validity = certificate.validity();
        Some(Self { begins: validity.not_before.timestamp(), ends: validity.not_after.timestamp() })
    }

    /// A certificate is noted when 60 days are left, and due when 30 days are left. If its whole validity is less than 90 days,
    /// the limits are two thirds and one third of it, so that short-lived certificates are not renewed in each run.
    pub(crate) fn age(self, now: OffsetDateTime) -> Age {
        let (left, third) = (self.ends - now.unix_timestamp(), (self.ends - self.begins) / 3);
        match left {
            left if left <= 0 => Age::Expired,
            left if left < third.min(30 * DAY) => Age::Due,
            left if left < (2 * third).min(60 * DAY) => Age::Noted,
            _ => Age::Good,
        }
    }

    /// Whether less than a twentieth of the validity is left. Kubelets renew their certificates when a tenth to three tenths are
    /// left.
    pub(crate) fn is_late_for_a_kubelet(self, now: OffsetDateTime) -> bool {
        (self.ends - now.unix_timestamp()) * 20 < self.ends - self.begins
    }

    /// "expires on 2027-01-20, in 59 days" or "has expired on 2027-01-20".
    pub(crate) fn words(self, now: OffsetDateTime) -> String {
        let left = self.ends - now.unix_timestamp();
        let date = self.end_date();
        match left {
            left if left <= 0 => format!("has expired on {date}"),
            left if left < 2 * DAY => format!("expires on {date}, in {} hours", left / 3600),
            left => format!("expires on {date}, in {} days", left / DAY),
        }
    }

    /// Days until its end; negative when it has expired.
    pub(crate) fn days_left(self, now: OffsetDateTime) -> i64 {
        (self.ends - now.unix_timestamp()).div_euclid(DAY)
    }

    /// The day of its end: `2027-01-20`.
    pub(crate) fn end_date(self) -> String {
        day(self.ends)
    }

    /// The day from which on it is renewed.
    pub(crate) fn due_date(self) -> String {
        day(self.ends - (30 * DAY).min((self.ends - self.begins) / 3))
    }

    /// Returns the validity that ends first.
    pub(crate) fn first(self, other: Self) -> Self {
        if other.ends < self.ends { other } else { self }
    }
}

fn day(seconds: i64) -> String {
    OffsetDateTime::from_unix_timestamp(seconds)
        .map_or_else(|_| "?".to_owned(), |time| time.date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_certificates_are_renewed_in_their_last_month_and_short_ones_in_their_last_third() {
        let now = OffsetDateTime::now_utc();
        for (total, left, age) in [
            (365 * DAY, 61 * DAY, Age::Good),
            (365 * DAY, 59 * DAY, Age::Noted),
            (365 * DAY, 30 * DAY, Age::Noted),
            (365 * DAY, 29 * DAY, Age::Due),
            (365 * DAY, 0, Age::Expired),
            (365 * DAY, -DAY, Age::Expired),
            (3 * DAY, 3 * DAY, Age::Good),
            (3 * DAY, 2 * DAY, Age::Good),
            (3 * DAY, DAY + 1, Age::Noted),
            (3 * DAY, DAY - 1, Age::Due),
        ] {
            let ends = now.unix_timestamp() + left;
            assert_eq!(Validity { begins: ends - total, ends }.age(now), age, "{left} of {total}");
        }
    }

    #[test]
    fn the_end_is_said_with_its_day_and_what_is_left() {
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        for (left, words) in [
            (59 * DAY + 5, "expires on 2027-03-15, in 59 days"),
            (7200, "expires on 2027-01-15, in 2 hours"),
            (-DAY, "has expired on 2027-01-14"),
        ] {
            assert_eq!(Validity { begins: 0, ends: 1_800_000_000 + left }.words(now), words);
        }
    }
}
