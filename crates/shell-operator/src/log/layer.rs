//! From `tracing` events to records.

use std::fmt::Debug;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::{Fields, Level, Logger, Record};

/// Writes the operator's own events to a [`Logger`], and events of libraries only on request: failures in libraries are returned
/// as errors, which the operator logs in its own words.
pub struct LogLayer {
    /// Where records go.
    pub logger: Logger,
    /// Whether the Kubernetes client library's events are written at their levels too.
    pub libraries: bool,
}

impl LogLayer {
    fn takes(&self, target: &str) -> bool {
        self.libraries || target.starts_with("shell_operator")
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    /// `tracing` caches this answer for each call site, and the level may change: so the answer must not depend on the level.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.takes(metadata.target()) { Interest::sometimes() } else { Interest::always() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Events that are not taken here may be for another layer of the program that contains the operator.
        !self.takes(metadata.target()) || self.logger.enabled(level_of(*metadata.level()))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.takes(event.metadata().target()) {
            return;
        }
        let mut visitor = Visitor::default();
        event.record(&mut visitor);
        let level = level_of(*event.metadata().level());
        self.logger.write(&Record { level, message: visitor.message, fields: visitor.fields });
    }
}

fn level_of(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

#[derive(Default)]
struct Visitor {
    message: String,
    fields: Fields,
}

impl Visitor {
    fn put(&mut self, field: &Field, value: Value) {
        match field.name() {
            "message" => self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            name => {
                self.fields.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Visitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::log::Format;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A layer of another part of the program: the targets of its events.
    #[derive(Clone, Default)]
    struct Other(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Other {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(event.metadata().target().to_owned());
        }
    }

    #[test]
    fn other_layers_get_the_events_of_others() {
        let (output, other) = (Output::default(), Other::default());
        let logger = Logger::new(Format::Text, false, Level::Error, Box::new(output.clone()));
        let registry = tracing_subscriber::registry().with(other.clone());
        let registry = registry.with(LogLayer { logger, libraries: false });
        tracing::subscriber::with_default(registry, || tracing::debug!(target: "embedder", "said"));
        assert_eq!(*other.0.lock().unwrap(), ["embedder"]);
        assert!(output.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_level_that_is_changed_counts_for_what_was_reached_before() {
        let output = Output::default();
        let logger = Logger::new(Format::Text, false, Level::Info, Box::new(output.clone()));
        let layer = LogLayer { logger: logger.clone(), libraries: false };
        let say = |number: u32| tracing::debug!(number, "looked at");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            say(1);
            logger.set_level(Level::Debug);
            say(2);
            logger.set_level(Level::Warn);
            say(3);
        });
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "level=debug msg=\"looked at\" number=2\n");
    }
}
