//! Functions of jq that jaq lacks or defines differently.

use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Error, RunPtr};
use jaq_json::Val;

type ValR = jaq_core::ValR<Val>;

use super::{Data, budget, paths};
use crate::json::{self, jq_text};

/// Longest string in bytes that repeating one may make.
const LONGEST: u32 = 64 << 20;

/// The functions that can be defined in jq. `env` is empty: filters do not see the operator's environment.
pub(super) const DEFINITIONS: &str = r#"
def env: {};
def _location($before): { file: "<top-level>", line: ([$before | explode[] | select(. == 10)] | length + 1) };
def _divide($right; $left): if $right == 0 and ($left | isnumber)
  then error("\($left) cannot be divided because the divisor is zero") else $left / $right end;
def tostring: if isstring then . else tojson end;
def _ltrimstr($x): ltrimstr($x);
def ltrimstr($x): if isstring and ($x | isstring) then _ltrimstr($x) else . end;
def _rtrimstr($x): rtrimstr($x);
def rtrimstr($x): if isstring and ($x | isstring) then _rtrimstr($x) else . end;
def trimstr($x): ltrimstr($x) | rtrimstr($x);
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def todateiso8601: todate;
def join($s): if . == [] then "" else
  reduce .[] as $x (null; (if . == null then "" else . + $s end)
    + ($x | if . == null then "" elif isstring then . else tojson end)) end;
def _entry_key: if has("key") then .key elif has("k") then .k elif has("name") then .name
  elif has("Name") then .Name elif has("Key") then .Key elif has("K") then .K else null end
  | if isstring then . elif . == null then "null" else tojson end;
def _entry_value: if has("value") then .value elif has("v") then .v elif has("Value") then .Value
  elif has("V") then .V else null end;
def to_entries: [keys[] as $key | { $key, value: .[$key] }];
def from_entries: reduce .[] as $x ({}; . + ($x | { (_entry_key): _entry_value }));
def with_entries(f): to_entries | map(f) | from_entries;
def leaf_paths: paths(isarray or isobject | not);
def IN(s): any(s == .; .);
def IN(source; s): any(source == s; .);
def INDEX(source; f): reduce source as $x ({}; . + { ($x | f | tostring): $x });
def INDEX(f): INDEX(.[]; f);
def tostream: def rec($path):
    if (isarray or isobject) and length > 0
    then . as $all | (keys_unsorted[] as $k | $all[$k] | rec($path + [$k])), [[$path[], (keys_unsorted | last)]]
    else [$path, .] end;
  rec([]);
def fromstream(f): foreach f as $event ({};
    (if .done then {} else . end)
    | if ($event | length) == 2
      then .value |= _set_path([$event[0], $event[1]]) | .done = ($event[0] | length == 0)
      else .done = ($event[0] | length == 1) end;
    if .done then .value else empty end);
def _steps(stream): stream | _step as $__step | .;
def _range(from; to; by): range(from; to; by);
def range(from; to; by): _steps(_range(from; to; by));
def range(from; to): range(from; to; 1);
def range(to): range(0; to);
def repeat(f): def rec: _step as $__step | (f | (., rec)); rec;
def recurse(f): def rec: _step as $__step | (., (f | rec)); rec;
def recurse: recurse(.[]?);
def recurse(f; cond): recurse(f | select(cond));
def while(cond; update): def rec: _step as $__step | if cond then (., (update | rec)) else empty end; rec;
def until(cond; update): def rec: _step as $__step | if cond then . else (update | rec) end; rec;
def combinations: if length == 0 then [] else .[0] as $first | .[1:] as $rest
  | _steps($first[]) as $x | ($rest | combinations) as $after | [$x] + $after end;
def combinations($n): [limit($n; repeat(.))] | combinations;
def truncate_stream(stream): . as $n | stream | select(.[0] | length > $n) | [(.[0] | .[$n:]), .[1:][]];
"#;

/// The functions of jaq, some of them replaced, and our own.
pub(super) fn native() -> impl Iterator<Item = Fun<Data>> {
    let own: [Filter<RunPtr<Data>>; 8] = [
        ("_step", v(0), |_| bome(budget::step().map(|()| Val::Null).map_err(Error::str))),
        ("_multiply", v(2), |mut cv| {
            let (left, right) = (cv.0.pop_var(), cv.0.pop_var());
            bome(multiply(left, right))
        }),
        ("_set_path", v(1), |mut cv| {
            let arguments = cv.0.pop_var();
            let Val::Arr(arguments) = &arguments else { return bome(Err(Error::str("no path"))) };
            let [Val::Arr(path), new] = arguments.as_slice() else {
                return bome(Err(Error::str("a path must be an array")));
            };
            bome(paths::set(cv.1, path, new.clone()).map_err(Error::str))
        }),
        ("_delete_paths", v(1), |mut cv| {
            let Val::Arr(paths) = cv.0.pop_var() else {
                return bome(Err(Error::str("paths must be an array")));
            };
            bome(paths::delete_all(cv.1, paths.to_vec()).map_err(Error::str))
        }),
        ("tojson", v(0), |cv| bome(jq_text(&cv.1).map(Val::utf8_str).map_err(Error::str))),
        ("fromjson", v(0), |cv| bome(from_json(&cv.1).map_err(Error::str))),
        ("@csv", v(0), |cv| bome(row(&cv.1, ",", csv_text).map(Val::utf8_str).map_err(Error::str))),
        ("@tsv", v(0), |cv| bome(row(&cv.1, "\t", tsv_text).map(Val::utf8_str).map_err(Error::str))),
    ];
    let theirs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    theirs
        .filter(|fun| !["env", "tojson", "fromjson"].contains(&fun.0))
        .chain(own.into_iter().map(run::<Data>))
}

fn multiply(left: Val, right: Val) -> ValR {
    if let (Val::TStr(text), Val::Num(times)) | (Val::Num(times), Val::TStr(text)) = (&left, &right) {
        let times: f64 = times.to_string().parse().unwrap_or(f64::INFINITY);
        #[expect(clippy::cast_precision_loss, reason = "a rounded size is enough")]
        if text.len() as f64 * times > f64::from(LONGEST) {
            return Err(Error::str(format!("a string must not have more than {LONGEST} bytes")));
        }
    }
    left * right
}

fn from_json(value: &Val) -> Result<Val, String> {
    let Val::TStr(text) = value else { return Err("only a string can be read as JSON".to_owned()) };
    json::parse(text).map_err(|error| error.to_string())
}

/// The items of an array as one line.
fn row(value: &Val, separator: &str, text: fn(&str) -> String) -> Result<String, String> {
    let Val::Arr(items) = value else { return Err("only an array can be a row".to_owned()) };
    let cells = items.iter().map(|item| match item {
        Val::Null => Ok(String::new()),
        Val::TStr(bytes) => Ok(text(&String::from_utf8_lossy(bytes))),
        Val::Num(_) | Val::Bool(_) => jq_text(item).map_err(|error| error.to_string()),
        _ => Err("arrays and objects have no place in a row".to_owned()),
    });
    Ok(cells.collect::<Result<Vec<_>, _>>()?.join(separator))
}

fn csv_text(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn tsv_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}
