//! The use cases over a shelf of their own, with time that does not pass by itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::catalog::{Branch, Page};

/// A shelf without products that takes its time, and counts.
#[derive(Default)]
struct Slow {
    takes: Duration,
    at_once: AtomicUsize,
    most: AtomicUsize,
    asked: std::sync::Mutex<Vec<Vec<String>>>,
}

impl Slow {
    async fn call(&self) {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Shelf for Slow {
    fn takes_its_own_call(&self, id: &str) -> bool {
        id.contains(',')
    }

    async fn categories(&self) -> Result<Vec<Branch>, store::Error> {
        self.call().await;
        Ok(vec![Branch { key: "7".to_owned(), value: "mugs".to_owned(), parent: None }])
    }

    async fn search(&self, _: &Query, _: &[String]) -> Result<Page, store::Error> {
        self.call().await;
        Ok(Page { products: Vec::new(), total: None, more: false })
    }

    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, store::Error> {
        self.asked.lock().unwrap().push(ids.to_vec());
        self.call().await;
        Ok(vec![None; ids.len()])
    }

    async fn closely(&self, _: &str, _: &Wish) -> Result<Option<Found>, store::Error> {
        Ok(None)
    }
}

fn catalog(takes: u64) -> (Arc<Slow>, Catalog) {
    let shelf = Arc::new(Slow { takes: Duration::from_secs(takes), ..Slow::default() });
    let settings = Settings {
        ttl: Duration::from_mins(1),
        cache_bytes: 1_000_000,
        page_size: 50,
        ids: 50,
        calls: 2,
        wait: Duration::from_secs(5),
    };
    (Arc::clone(&shelf), Catalog::new(shelf, settings))
}

fn query(text: &str) -> Query {
    Query { text: Some(text.to_owned()), filter: Filter::default(), page: 1, limit: 10 }
}

#[tokio::test(start_paused = true)]
async fn a_shop_is_asked_a_few_questions_at_one_time() {
    let (shelf, catalog) = catalog(1);
    let queries: Vec<Query> = (0..6).map(|n| query(&n.to_string())).collect();
    let found = futures::future::join_all(queries.iter().map(|query| catalog.search(query))).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(shelf.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_a_turn_is_told_to_come_again() {
    let (shelf, catalog) = catalog(4);
    let queries: Vec<Query> = (0..6).map(|n| query(&n.to_string())).collect();
    let found = futures::future::join_all(queries.iter().map(|query| catalog.search(query))).await;
    // Two at once, four seconds each: the third pair would wait for eight.
    assert_eq!(found.iter().filter(|found| found.is_ok()).count(), 4);
    let busy = found.into_iter().find_map(Result::err).unwrap();
    assert_eq!(busy.retry_after_secs(), 1);
    assert_eq!(shelf.most.load(Ordering::SeqCst), 2);
    catalog.search(&query("5")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_ids_that_take_their_own_call_one_is_asked_for_and_the_others_are_not_held_unknown() {
    let (shelf, catalog) = catalog(0);
    let ids: Vec<String> = ["a", "b,1", "c,2", "d", "e,3"].map(str::to_owned).into();
    let looked = catalog.lookup(&ids, &Filter::default()).await.unwrap();
    assert_eq!(looked.unknown, ids);
    catalog.lookup(&["c,2".to_owned()], &Filter::default()).await.unwrap();
    let asked = shelf.asked.lock().unwrap();
    assert_eq!(*asked, [vec!["a", "b,1", "d"], vec!["c,2"]]);
}

#[tokio::test(start_paused = true)]
async fn categories_are_asked_for_once_and_unknown_ones_fit_nothing() {
    let (shelf, catalog) = catalog(1);
    let of = |value: &str| {
        let filter = Filter { categories: vec![value.to_owned()], ..Filter::default() };
        Query { filter, ..query("x") }
    };
    let begun = tokio::time::Instant::now();
    let nothing = catalog.search(&of("17")).await.unwrap();
    assert_eq!((nothing.listings.len(), nothing.total, nothing.more), (0, Some(0), false));
    catalog.search(&of("mugs")).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(2), "one call for the list, one for the search");
    assert_eq!(shelf.most.load(Ordering::SeqCst), 1);
}
