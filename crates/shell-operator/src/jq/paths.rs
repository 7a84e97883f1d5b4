//! Sets and deletes values at paths: missing values on the way are created, as in jq.

use std::ops::Range;
use std::sync::Arc;

use jaq_json::{Map, Num, Val};

/// Most items of an array that is extended by setting one of them.
const LONGEST: usize = 1 << 20;

/// `value` with `new` at `path`.
pub(super) fn set(value: Val, path: &[Val], new: Val) -> Result<Val, String> {
    let Some((key, rest)) = path.split_first() else { return Ok(new) };
    match (value, key) {
        (Val::Null, Val::TStr(_)) => {
            let inner = set(Val::Null, rest, new)?;
            Ok(Val::obj(Map::from_iter([(key.clone(), inner)])))
        }
        (Val::Obj(mut map), Val::TStr(_)) => {
            let entries = Arc::make_mut(&mut map);
            let old = entries.get_mut(key).map(std::mem::take).unwrap_or_default();
            let inner = set(old, rest, new)?;
            entries.insert(key.clone(), inner);
            Ok(Val::Obj(map))
        }
        (Val::Null, Val::Num(_) | Val::Obj(_)) => set(Val::Arr(Arc::default()), path, new),
        (Val::Arr(mut items), Val::Num(number)) => {
            let items_mut = Arc::make_mut(&mut items);
            let index = index(number, items_mut.len()).ok_or("out of bounds negative array index")?;
            if index > LONGEST {
                return Err(format!("an array must not have more than {LONGEST} items"));
            }
            if index >= items_mut.len() {
                items_mut.resize(index + 1, Val::Null);
            }
            let old = std::mem::take(&mut items_mut[index]);
            items_mut[index] = set(old, rest, new)?;
            Ok(Val::Arr(items))
        }
        (Val::Arr(mut items), Val::Obj(slice)) => {
            let range = slice_range(slice, items.len());
            let part: Val = items[range.clone()].iter().cloned().collect();
            let Val::Arr(inner) = set(part, rest, new)? else {
                return Err("a slice can only be replaced by an array".to_owned());
            };
            Arc::make_mut(&mut items).splice(range, inner.iter().cloned());
            Ok(Val::Arr(items))
        }
        (value, key) => Err(format!("cannot index {} with {key}", type_name(&value))),
    }
}

/// `value` without what is at `paths`, the last ones first, so that earlier ones stay where they are.
pub(super) fn delete_all(mut value: Val, mut paths: Vec<Val>) -> Result<Val, String> {
    paths.sort_unstable();
    paths.dedup();
    for path in paths.into_iter().rev() {
        let Val::Arr(path) = path else { return Err("a path must be an array".to_owned()) };
        value = delete(value, &path)?;
    }
    Ok(value)
}

fn delete(value: Val, path: &[Val]) -> Result<Val, String> {
    let Some((key, rest)) = path.split_first() else { return Ok(Val::Null) };
    match (value, key) {
        (Val::Null, _) => Ok(Val::Null),
        (Val::Obj(mut map), Val::TStr(_)) => {
            let entries = Arc::make_mut(&mut map);
            if rest.is_empty() {
                entries.shift_remove(key);
            } else if let Some(inner) = entries.get_mut(key) {
                *inner = delete(std::mem::take(inner), rest)?;
            }
            Ok(Val::Obj(map))
        }
        (Val::Arr(mut items), Val::Num(number)) => {
            let items_mut = Arc::make_mut(&mut items);
            if let Some(index) = index(number, items_mut.len()).filter(|index| *index < items_mut.len()) {
                if rest.is_empty() {
                    items_mut.remove(index);
                } else {
                    items_mut[index] = delete(std::mem::take(&mut items_mut[index]), rest)?;
                }
            }
            Ok(Val::Arr(items))
        }
        (Val::Arr(mut items), Val::Obj(slice)) if rest.is_empty() => {
            let range = slice_range(slice, items.len());
            Arc::make_mut(&mut items).drain(range);
            Ok(Val::Arr(items))
        }
        (value, key) => Err(format!("cannot delete {key} of {}", type_name(&value))),
    }
}

/// Position from the front; negative numbers count from the end.
fn index(number: &Num, length: usize) -> Option<usize> {
    let index = whole(number)?;
    usize::try_from(index).ok().or_else(|| length.checked_sub(index.unsigned_abs()))
}

/// jq cuts the fraction off an index.
fn whole(number: &Num) -> Option<isize> {
    #[expect(clippy::cast_possible_truncation, reason = "an index beyond isize is out of any array")]
    number.as_isize().or_else(|| number.to_string().parse::<f64>().ok().map(|float| float.floor() as isize))
}

fn slice_range(slice: &Map, length: usize) -> Range<usize> {
    let bound = |key: &'static str, default: usize| match slice.get(&Val::utf8_str(key)) {
        Some(Val::Num(number)) => index(number, length).unwrap_or(0).min(length),
        _ => default,
    };
    let (start, end) = (bound("start", 0), bound("end", length));
    start..end.max(start)
}

fn type_name(value: &Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Bool(_) => "boolean",
        Val::Num(_) => "number",
        Val::BStr(_) | Val::TStr(_) => "string",
        Val::Arr(_) => "array",
        Val::Obj(_) => "object",
    }
}
