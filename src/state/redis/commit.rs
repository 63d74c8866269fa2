//! The one step that writes: what a commit says to its script, what the script says to it, and how long replicas
//! are waited for.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redis::{RedisError, Value};

use super::{
    OPERATIONS, Redis, judged, keys, link::Wire, millis, number, said, script, script::Script, stock,
    strange, unavailable,
};
use crate::checkout::{
    session::Session,
    state::{ClaimEnd, Commit, Error, Expect},
};

/// How long replicas may take.
const REPLICAS_WAIT: Duration = Duration::from_secs(1);

impl Redis {
    /// Writes session, answer, end of the claim and sightings in one step; the session's new version.
    ///
    /// # Errors
    /// See [`Error`]; after [`Error::Unavailable`] nothing is known of it.
    pub(super) async fn write(&self, commit: Commit) -> Result<u64, Error> {
        let keys = self.keys(&commit.shop);
        let scope = match &commit.claim {
            ClaimEnd::Keep => None,
            ClaimEnd::Finish(claim, _) | ClaimEnd::Release(claim) | ClaimEnd::Attach(claim, _) => {
                Some(&claim.scope)
            }
            ClaimEnd::FinishScope(scope, _) | ClaimEnd::ReleaseScope(scope) => Some(scope),
        };
        let session = commit.session.as_ref().map(|(session, _)| session);
        let names = [
            keys.operation(&commit.operation),
            session.map_or_else(|| keys.none(), |session| keys.session(&session.id)),
            session.map_or_else(|| keys.none(), |session| keys.token(&session.continue_token)),
            keys.open(),
            keys.due(),
            keys.all(),
            scope.map_or_else(|| keys.none(), |scope| keys.claim(scope)),
            keys.epoch(),
            keys.replid(),
            keys.quarantine(),
            keys.review(),
            keys.owners(),
            keys.stock_sequence(),
            keys.shelves(),
        ];
        let mut names = names.to_vec();
        let mut arguments = self.commit_arguments(&commit)?;
        let stock =
            commit.stock.as_ref().map(|step| stock::in_commit(step, &keys, &self.owner)).transpose()?;
        let (shelves, told) = stock.unwrap_or_default();
        arguments.extend([commit.sightings.len().to_string().into_bytes(), told]);
        for seen in &commit.sightings {
            names.extend([keys.seen(&seen.shop_order), keys.seen_of(&seen.session)]);
            let body = serde_json::to_vec(seen);
            arguments.extend([
                seen.shop_order.clone().into_bytes(),
                seen.session.as_str().as_bytes().to_vec(),
                if seen.adopted { b"1".to_vec() } else { b"0".to_vec() },
                body.map_err(|error| Error::Unreadable(format!("a sighting: {error}")))?,
            ]);
        }
        names.extend(shelves);
        let rests_on_it = !commit.sightings.is_empty()
            || matches!(commit.claim, ClaimEnd::Attach(..))
            || matches!(commit.session, Some((_, Expect::Attempt(_))));
        let value = if rests_on_it {
            self.run_durably(&script::COMMIT, &names, &arguments).await?
        } else {
            self.run(&script::COMMIT, &names, &arguments).await?
        };
        let (word, rest) = said(value)?;
        match word.as_str() {
            "ok" => number(&rest),
            "moved" => Err(Error::Moved),
            "attempt_closed" => Err(Error::AttemptClosed),
            "claim_lost" => Err(Error::ClaimLost),
            "order_taken" => {
                Err(Error::OrderTaken { shop_order: String::from_utf8_lossy(&rest).into_owned() })
            }
            "not_admitted" => Err(Error::NotAdmitted),
            "quarantine" => Err(Error::Quarantine { retry_after_secs: number(&rest)?.max(1) }),
            other => Err(strange(other)),
        }
    }

    /// Runs a script on which an order rests, and waits until enough replicas have it. The replicas are asked over
    /// the same connection: they answer for what it wrote.
    async fn run_durably(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Value, Error> {
        if self.replicas == 0 {
            return self.run(script, keys, arguments).await;
        }
        let _permit = self.waiting.acquire().await.map_err(|error| Error::Unavailable(Box::new(error)))?;
        let at = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let _back = Back { free: &self.free, at };
        let Some(link) = self.durable.get(at) else { return Err(Error::Unavailable("no connection".into())) };
        let mut wire = link.wire().await.map_err(unavailable)?;
        let result = script.run(&mut wire, keys, arguments).await;
        let value = judged(link, result).await?;
        let first = keys.first().map(String::as_str).unwrap_or_default();
        let acknowledged = judged(link, wait_for_replicas(&mut wire, first, self.replicas).await).await?;
        if acknowledged < u64::from(self.replicas) {
            // Told in the log by whoever asked for it, once.
            let wanted = self.replicas;
            let few = format!("{acknowledged} replicas have the commit, {wanted} have to");
            return Err(Error::Unavailable(few.into()));
        }
        Ok(value)
    }

    /// The arguments of a commit, in the order in which the script reads them.
    fn commit_arguments(&self, commit: &Commit) -> Result<Vec<Vec<u8>>, Error> {
        let (session, expect) = match &commit.session {
            Some((session, expect)) => (Some(session), Some(*expect)),
            None => (None, None),
        };
        let (expects, expected) = match expect {
            None => ("none", String::new()),
            Some(Expect::New) => ("new", String::new()),
            Some(Expect::Version(version)) => ("version", version.to_string()),
            Some(Expect::Attempt(number)) => ("attempt", number.to_string()),
        };
        let body = session.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| Error::Unreadable(format!("a session: {error}")))?;
        let attempt = session.and_then(|session| session.attempt.as_ref());
        let (end, fence, answer, attached) = match &commit.claim {
            ClaimEnd::Keep => ("keep", None, None, None),
            ClaimEnd::Finish(claim, answer) => ("finish", Some(claim.fence), Some(answer), None),
            ClaimEnd::Release(claim) => ("release", Some(claim.fence), None, None),
            ClaimEnd::Attach(claim, attempt) => ("attach", Some(claim.fence), None, Some(*attempt)),
            ClaimEnd::FinishScope(_, answer) => ("finish", None, Some(answer), None),
            ClaimEnd::ReleaseScope(_) => ("release", None, None, None),
        };
        let answer = answer.map(serde_json::to_vec).transpose();
        let answer = answer.map_err(|error| Error::Unreadable(format!("an answer: {error}")))?;
        let text = |text: String| text.into_bytes();
        let left = session.map(|session| session.expires_at - self.clock.now());
        let keep =
            left.map_or(self.settings.retention.answers, |left| left.max(self.settings.retention.answers));
        let due = session.map(|session| session.due_at().unwrap_or(session.expires_at));
        Ok(vec![
            millis(OPERATIONS),
            text(self.owner.clone()),
            self.quarantine_ms(),
            text(expects.to_owned()),
            text(expected),
            text(session.map(|session| session.id.to_string()).unwrap_or_default()),
            body.unwrap_or_default(),
            text(attempt.map(|attempt| attempt.number.to_string()).unwrap_or_default()),
            text(due.map(|due| due.timestamp_millis().to_string()).unwrap_or_default()),
            text(
                if session.is_some_and(|session| session.due_at().is_none()) { "1" } else { "0" }.to_owned(),
            ),
            text(
                session.map(|session| session.updated_at.timestamp_millis().to_string()).unwrap_or_default(),
            ),
            text(end.to_owned()),
            text(fence.map(|fence| fence.to_string()).unwrap_or_default()),
            answer.unwrap_or_default(),
            text(keep.num_milliseconds().max(1).to_string()),
            text(attached.map(|attempt| attempt.to_string()).unwrap_or_default()),
            text(if session.is_some_and(Session::wants_review) { "1" } else { "0" }.to_owned()),
        ])
    }
}

/// Gives a durable connection back.
struct Back<'a> {
    free: &'a Mutex<Vec<usize>>,
    at: usize,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.at);
    }
}

/// Asks how many replicas have everything that this connection wrote.
async fn wait_for_replicas(wire: &mut Wire, key: &str, replicas: u32) -> Result<u64, RedisError> {
    let mut wait = redis::cmd("WAIT");
    wait.arg(replicas).arg(REPLICAS_WAIT.as_millis().to_string());
    match wire {
        Wire::Server(connection) => wait.query_async(connection).await,
        Wire::Cluster(connection) => {
            use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
            let route = SingleNodeRoutingInfo::SpecificNode(Route::new(keys::slot(key), SlotAddr::Master));
            let route = RoutingInfo::SingleNode(route);
            redis::from_redis_value(connection.route_command(wait, route).await?).map_err(RedisError::from)
        }
    }
}
