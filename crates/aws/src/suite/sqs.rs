//! Messages are sent, received in order, and gone once deleted.

use std::time::Duration;

use urr_kernel::{Clock, Ids};
use urr_testkit::services;
use uuid::Uuid;

use crate::{AwsConfig, Note, Queue};

const WAIT: Duration = Duration::from_secs(2);

async fn queue() -> Option<Queue> {
    let clock = Clock::system();
    let config = AwsConfig { deadline: Duration::from_secs(20), ..AwsConfig::local(services::sqs()?) };
    let name = format!("test-{}.fifo", Ids::random(clock.clone()).next::<Uuid>());
    let url = Queue::create(config.clone(), &name, clock.clone()).await.unwrap();
    Some(Queue::connect(config, url, clock).unwrap())
}

fn note(group: &str, name: &str) -> Note {
    Note { group: group.to_owned(), name: name.to_owned(), body: format!("{group} {name}") }
}

#[tokio::test]
async fn messages_of_a_group_arrive_in_order_once_until_deleted() {
    let Some(queue) = queue().await else { return };
    let notes = vec![note("a", "1"), note("b", "2"), note("a", "3"), note("a", "1")];
    assert_eq!(queue.send(notes).await, Ok(Vec::new()));
    assert_eq!(queue.depth().await, Ok(3), "duplicates are dropped");
    let mut bodies = Vec::new();
    while bodies.len() < 3 {
        let received = queue.receive(WAIT).await.unwrap();
        assert!(!received.is_empty(), "{bodies:?} but the queue is empty");
        bodies.extend(received.iter().map(|note| note.body.clone()));
        assert_eq!(queue.delete(&received).await, Ok(received.len()));
    }
    let of_a: Vec<&String> = bodies.iter().filter(|body| body.starts_with('a')).collect();
    assert_eq!(of_a, ["a 1", "a 3"]);
    assert_eq!(queue.depth().await, Ok(0));
    assert_eq!(queue.receive(Duration::from_secs(1)).await, Ok(Vec::new()));
}
