//! All watches of the operator.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::monitor::{Monitor, Sink};
use super::namespaces::{self, Router};
use super::reader::Reader;
use super::store::View;
use super::{FindError, Resource, Resources, Selection, Watch};
use crate::config::{KubernetesBinding, LabelSelector, NamespaceSelector};
use crate::metrics::OperatorMetrics;

/// Finds or creates the watch for a binding, so that bindings share watches where possible.
pub struct Hub {
    client: Client,
    resources: Resources,
    sink: Arc<dyn Sink>,
    metrics: OperatorMetrics,
    reader: Reader,
    stop: CancellationToken,
    watches: Mutex<HashMap<Selection, Vec<Arc<Watch>>>>,
}

impl Hub {
    /// A hub without watches. All of them end with `stop`.
    pub fn new(
        client: Client,
        sink: Arc<dyn Sink>,
        metrics: OperatorMetrics,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let resources = Resources::new(client.clone());
        let sink = Arc::new(Router(sink));
        let reader = Reader::start(stop.clone());
        Arc::new(Self { client, resources, sink, metrics, reader, stop, watches: Mutex::default() })
    }

    /// The client of the watches.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where changes go.
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// The resource that a binding names.
    pub async fn find(&self, binding: &KubernetesBinding) -> Result<Resource, FindError> {
        self.resources.find(binding.api_version.as_deref(), &binding.kind).await
    }

    /// Lets `monitor` read the objects that its binding selects. New watches do not run before [`Hub::start`], so that bindings
    /// that are attached until then can share them.
    pub async fn attach(self: &Arc<Self>, monitor: &Arc<Monitor>, resource: &Resource) -> Result<(), String> {
        match &monitor.binding.namespace {
            NamespaceSelector::Labels(labels) if resource.namespaced => {
                namespaces::follow(self.clone(), monitor.clone(), resource.clone(), labels).await?;
            }
            NamespaceSelector::Names(names) if resource.namespaced => {
                for name in names {
                    self.attach_namespace(monitor, resource, Some(name), false);
                }
            }
            _ => self.attach_namespace(monitor, resource, None, false),
        }
        monitor.set_attached();
        Ok(())
    }

    /// Lets `monitor` read one namespace, or all.
    pub(super) fn attach_namespace(
        &self,
        monitor: &Arc<Monitor>,
        resource: &Resource,
        namespace: Option<&str>,
        announce: bool,
    ) {
        let binding = &monitor.binding;
        let fields: Vec<String> = binding.field_selector.iter().map(ToString::to_string).collect();
        let names: Vec<Option<&String>> =
            if binding.names.is_empty() { vec![None] } else { binding.names.iter().map(Some).collect() };
        for name in names {
            let mut fields = fields.clone();
            fields.extend(name.map(|name| format!("metadata.name={name}")));
            let selection = Selection {
                resource: resource.clone(),
                namespace: namespace.map(str::to_owned),
                labels: binding.label_selector.as_ref().map(ToString::to_string).unwrap_or_default(),
                fields: fields.join(","),
            };
            self.subscribe(monitor, selection, binding.resynchronization_period, announce);
        }
    }

    /// Reports the namespaces with these labels to `monitor`, from now on. If the hook's own binding watches them, `monitor`
    /// reads the same watch: the hook must not know a namespace before the operator reads it.
    pub(super) fn attach_to_namespaces(&self, monitor: &Arc<Monitor>, labels: &LabelSelector) {
        let selection = Selection {
            resource: Resource::namespaces(),
            namespace: None,
            labels: labels.to_string(),
            fields: String::new(),
        };
        self.subscribe(monitor, selection, None, true);
        // Bindings wait for the namespaces before they select what they watch in them: this cannot wait for `start`.
        monitor.sources().iter().for_each(|source| self.run(&source.watch));
    }

    fn subscribe(
        &self,
        monitor: &Arc<Monitor>,
        selection: Selection,
        period: Option<Duration>,
        announce: bool,
    ) {
        let binding = &monitor.binding;
        let view = View { filter: binding.filter.clone(), keep_object: binding.keep_full_objects };
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let same = watches.entry(selection.clone()).or_default();
        let follows = monitor.follower().is_some();
        let mut shared: Vec<_> = same.iter().filter(|watch| follows || watch.period() == period).collect();
        // Prefer a watch that the hook already reads: then no binding of the hook learns of a change earlier than the others.
        shared.sort_by_key(|watch| !watch.is_read_by(&monitor.hook));
        if shared.iter().any(|watch| watch.subscribe(monitor, &view, announce, &*self.sink).is_some()) {
            return;
        }
        let watch = Watch::new(selection, period, self.stop.child_token());
        watch.subscribe(monitor, &view, announce, &*self.sink);
        same.push(watch);
    }

    /// Starts every watch that does not run yet.
    pub fn start(&self) {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.values().flatten().for_each(|watch| self.run(watch));
    }

    fn run(&self, watch: &Arc<Watch>) {
        watch.start(self.client.clone(), self.sink.clone(), self.metrics.clone(), &self.reader);
    }

    /// Ends a monitor: watches without another reader are stopped.
    pub fn detach(&self, monitor: &Arc<Monitor>) {
        monitor.stop();
        self.detach_where(monitor, |_| true, false);
    }

    /// Ends a monitor's reading of some watches; with `farewell` their objects are `Deleted` events to it.
    pub(super) fn detach_where(
        &self,
        monitor: &Arc<Monitor>,
        which: impl Fn(&Watch) -> bool,
        farewell: bool,
    ) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for source in monitor.remove_sources(which) {
            let sink = farewell.then_some(&*self.sink);
            if source.watch.unsubscribe(monitor, source.view, sink) {
                source.watch.stop();
                if let Some(same) = watches.get_mut(source.watch.selection()) {
                    same.retain(|watch| watch.id() != source.watch.id());
                }
            }
        }
        watches.retain(|_, same| !same.is_empty());
    }
}
