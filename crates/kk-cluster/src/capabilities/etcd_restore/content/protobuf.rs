//! Decodes protobuf as far as the objects of a snapshot require it (protobuf.dev, "Encoding").

/// The first field with this number that contains bytes.
pub(super) fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
    fields(message).find(|(number, _)| *number == wanted).map(|(_, value)| value)
}

/// All fields that contain bytes, with their numbers. The iteration ends where the message cannot be read.
pub(super) fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let key = varint(&mut message)?;
            let length = match key & 7 {
                0 => {
                    varint(&mut message)?;
                    continue;
                }
                1 => 8,
                2 => usize::try_from(varint(&mut message)?).ok()?,
                5 => 4,
                _ => return None,
            };
            let (value, rest) = message.split_at_checked(length)?;
            message = rest;
            if key & 7 == 2 {
                return Some((key >> 3, value));
            }
        }
    })
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_bytes_are_found_behind_others_and_a_cut_message_has_none() {
        // 1: varint 300, 2: "ab", 3: 32 bits, 2: "c".
        let message = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 1, 2, 3, 4, 0x12, 1, b'c'];
        assert_eq!(bytes(&message, 2), Some(&b"ab"[..]));
        assert_eq!(fields(&message).map(|(_, value)| value).collect::<Vec<_>>(), [&b"ab"[..], b"c"]);
        assert_eq!(bytes(&message[..6], 2), None);
        assert_eq!(bytes(&[0x80; 12], 2), None);
    }
}
