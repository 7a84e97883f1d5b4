//! Floats in the shortest form that reads back, written as Go's JSON encoders write them.

/// Appends `value`: plain digits between 1e-6 and 1e21, an exponent of at least two digits outside.
///
/// `value` must be finite.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Rust writes the shortest digits too, but `3e-7` where Go has `3e-07`.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        out.extend_from_slice(format!("{digits}e{sign}{exponent:0>2}").as_bytes());
    } else if value == 0.0 {
        out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}
