//! Formats the timestamps of MCP tasks as RFC 3339 in UTC, with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats a time as in `2026-07-28T12:30:00.250Z`. Times before 1970 are written as the first moment of 1970.
pub(super) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Returns the date (year, month, day) in the Gregorian calendar that is `days` days after 1970-01-01.
///
/// Years are counted from March here, so that the leap day is the last day of its year: every 400 years have 146,097
/// days.
fn date(days: u64) -> (u64, u64, u64) {
    // 719,468 days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March have 153 days, and so have five from August.
    let months_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_from_march + 2) / 5 + 1;
    let month = if months_from_march < 10 { months_from_march + 3 } else { months_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> String {
        timestamp(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn known_moments_are_written_as_dates() {
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_164_800), "2024-02-29T00:00:00.000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(timestamp(UNIX_EPOCH + Duration::from_micros(1_250_999)), "1970-01-01T00:00:01.250Z");
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let mut expected = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(date(days), expected);
            let (year, month, day) = expected;
            let length = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}
