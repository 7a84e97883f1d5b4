//! All queues by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Queue, Task};
use crate::config::MAIN_QUEUE;

/// The queues of an operator. Cheap to clone; all clones are the same queues.
#[derive(Clone, Debug, Default)]
pub struct Queues(Arc<Mutex<BTreeMap<String, Arc<Queue>>>>);

impl Queues {
    /// The queue of that name; if it did not exist, it is created and the second value is true.
    pub fn get_or_create(&self, name: &str) -> (Arc<Queue>, bool) {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(name) {
            return (queue.clone(), false);
        }
        let queue = Arc::new(Queue::new(name));
        queues.insert(name.to_owned(), queue.clone());
        (queue, true)
    }

    /// Adds tasks at the end of the named queues; tasks of one queue together.
    pub fn push(&self, tasks: impl IntoIterator<Item = (String, Task)>) {
        let mut by_queue: BTreeMap<String, Vec<Task>> = BTreeMap::new();
        for (queue, task) in tasks {
            by_queue.entry(queue).or_default().push(task);
        }
        for (name, tasks) in by_queue {
            self.get_or_create(&name).0.push(tasks);
        }
    }

    /// All queues: `main` first, the others by name.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let main = queues.get(MAIN_QUEUE);
        main.into_iter()
            .chain(queues.values().filter(|queue| &**queue.name() != MAIN_QUEUE))
            .cloned()
            .collect()
    }
}
