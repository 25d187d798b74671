//! A cache of the channels' templates, which their providers define.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use hotline_actors::campaigns::TemplateStates;
use hotline_actors::channels::Account;
use hotline_actors::keyed_locks::KeyedLocks;
use hotline_actors::ttl_cache::{TtlCache, WeightFn};
use hotline_persistence::tables::campaigns::PausedReason;
use hotline_persistence::tables::channels::{ChannelRow, ChannelStatus, ChannelType};
use hotline_persistence::{ChannelId, CompanyId};
use serde::Deserialize;

use super::Template;
use crate::providers::Graph;
use crate::web::{ApiError, ApiResult};

/// How often templates are fetched from the providers.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long fetched templates count as current. An approval is noticed earlier: a send with an unknown template
    /// triggers a new fetch. Default: 5 minutes.
    pub fresh_for: Duration,
    /// How long after a fetch an unknown template does not trigger another, so that wrong names do not each cause a
    /// call to the provider. Default: 10 seconds.
    pub refetch_pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { fresh_for: Duration::from_secs(300), refetch_pause: Duration::from_secs(10) }
    }
}

/// How long fetched templates are used while the provider does not respond.
const STALE_FOR: Duration = Duration::from_secs(24 * 3600);

/// Pause after a failed fetch, so that the requests that waited for it do not each start another one. They get outdated
/// templates, or fail too.
const FAILED_FOR: Duration = Duration::from_secs(5);

/// Maximum number of channels with a recent failure, about 100 bytes each.
const FAILED_MAX: usize = 1000;

/// Timeout of a fetch, including all pages: a caller waits for it.
const FETCH_TIME_MAX: Duration = Duration::from_secs(20);

/// Maximum size of all cached templates, in bytes as JSON. One takes 1 or 2 KiB, and few accounts have hundreds.
const CACHE_BYTES_MAX: u64 = 64 << 20;

/// Expected number of accounts. A list larger than 32 times the average, [`CACHE_BYTES_MAX`] divided by this, may not
/// be cached (see [`TtlCache::weighted`]), and each send would fetch it. This limit is 32 MiB; fetched lists are
/// smaller.
const ACCOUNTS_EXPECTED: usize = 64;

type CacheKey = (CompanyId, ChannelId);
type TemplateWeight = fn(&CacheKey, &Arc<CachedTemplates>) -> u64;

/// The cache.
pub struct Templates {
    graph: Graph,
    options: Options,
    cache: TtlCache<CacheKey, Arc<CachedTemplates>, WeightFn<TemplateWeight>>,
    /// One fetch at a time per channel.
    fetch_locks: KeyedLocks<CacheKey>,
    /// The last failure by channel.
    failures: TtlCache<CacheKey, Instant>,
    /// How many times each company's templates were dropped: a fetch that began before the last drop must not be
    /// cached.
    versions: DashMap<CompanyId, u64>,
}

/// The cached templates of a channel.
struct CachedTemplates {
    /// The account and business account they belong to: a channel may be moved to others.
    account: (Account, Option<String>),
    fetched_at: Instant,
    list: TemplateList,
    bytes: u64,
}

/// The templates of a channel.
#[derive(Clone)]
struct TemplateList {
    templates: Arc<[Template]>,
    /// Whether these are all templates of the account. If it has more than are fetched, the rest is unknown.
    is_complete: bool,
}

impl Templates {
    /// Creates an empty cache; templates are fetched through `graph`.
    pub fn new(graph: Graph, options: Options) -> Self {
        let weigh: TemplateWeight = |_, cached| cached.bytes;
        let cache = TtlCache::weighted(ACCOUNTS_EXPECTED, CACHE_BYTES_MAX, STALE_FOR, weigh);
        let failures = TtlCache::new(FAILED_MAX, FAILED_FOR);
        Self { graph, options, cache, fetch_locks: KeyedLocks::default(), failures, versions: DashMap::new() }
    }

    /// Drops the templates of a company's channels, because its provider has changed some, or because the company is
    /// dropped from memory.
    pub fn forget(&self, company: CompanyId) {
        let Self { graph: _, options: _, cache, fetch_locks: _, failures, versions } = self;
        *versions.entry(company).or_default() += 1;
        cache.remove_where(|(owner, _)| *owner == company);
        failures.remove_where(|(owner, _)| *owner == company);
    }

    /// The templates of a channel, approved or not; only phone channels have any. They are unknown if none are cached,
    /// and the provider cannot be called or does not respond. `None` if they are unknown and the channel is not
    /// connected.
    ///
    /// # Errors
    /// `503` when none are cached and the provider of a connected channel does not respond.
    pub async fn of(&self, channel: &ChannelRow) -> ApiResult<Option<Arc<[Template]>>> {
        Ok(self.get(self.options.fresh_for, channel).await?.map(|list| list.templates))
    }

    /// As [`Templates::of`], after a template was not found: fetches again, unless the last fetch is very recent.
    ///
    /// # Errors
    /// As for [`Templates::of`].
    pub async fn refresh(&self, channel: &ChannelRow) -> ApiResult<Option<Arc<[Template]>>> {
        Ok(self.get(self.options.refetch_pause, channel).await?.map(|list| list.templates))
    }

    async fn get(&self, age_max: Duration, channel: &ChannelRow) -> ApiResult<Option<TemplateList>> {
        if channel.kind != ChannelType::Whatsapp {
            return Ok(Some(TemplateList { templates: Arc::new([]), is_complete: true }));
        }
        let key = (channel.company_id, channel.id);
        let Some(account) = account_of(channel) else {
            // The cached templates may belong to any account that the channel had.
            return Ok(self.cache.get(&key).map(|cached| cached.list.clone()));
        };
        let find_cached = || self.cache.get(&key).filter(|cached| cached.account == account);
        let find_fresh = || {
            let fresh = find_cached().filter(|cached| cached.fetched_at.elapsed() <= age_max);
            fresh.map(|cached| cached.list.clone())
        };
        if let Some(list) = find_fresh() {
            return Ok(Some(list));
        }
        let _guard = self.fetch_locks.lock(key).await;
        // Another request may have fetched them while this one waited for the lock.
        if let Some(list) = find_fresh() {
            return Ok(Some(list));
        }
        let has_just_failed = self.failures.get(&key).is_some_and(|failed_at| failed_at.elapsed() < FAILED_FOR);
        if !has_just_failed {
            let version = self.version(channel.company_id);
            if let Some((list, bytes)) = fetch(&self.graph, &account).await {
                self.failures.remove(&key);
                let (account, fetched_at) = (account.clone(), Instant::now());
                self.insert(key, CachedTemplates { account, fetched_at, list: list.clone(), bytes }, version);
                return Ok(Some(list));
            }
            self.failures.insert(key, Instant::now());
        }
        match find_cached() {
            Some(cached) => Ok(Some(cached.list.clone())),
            None if channel.status == ChannelStatus::Connected => Err(ApiError::unavailable()),
            None => Ok(None),
        }
    }

    fn version(&self, company: CompanyId) -> u64 {
        self.versions.get(&company).map_or(0, |version| *version)
    }

    /// Caches templates that were fetched at this version of their company, unless they were dropped since. The version
    /// stays locked meanwhile: [`Templates::forget`] first changes it, and then finds what was inserted before.
    fn insert(&self, (company, channel): CacheKey, entry: CachedTemplates, version: u64) {
        let current = self.versions.entry(company).or_default();
        if *current == version {
            self.cache.insert((company, channel), Arc::new(entry));
        }
    }
}

impl TemplateStates for Templates {
    fn paused_reason<'a>(
        &'a self,
        channel: &'a ChannelRow,
        name: &'a str,
        language: &'a str,
    ) -> LocalBoxFuture<'a, Option<PausedReason>> {
        let reason_in = move |list: Option<TemplateList>| {
            let list = list.filter(|_| channel.kind == ChannelType::Whatsapp)?;
            let is_requested = |template: &&Template| template.name == name && template.language == language;
            match list.templates.iter().find(is_requested) {
                Some(template) => PausedReason::of_template(&template.status),
                None => list.is_complete.then_some(PausedReason::TemplateDeleted),
            }
        };
        async move {
            reason_in(self.get(self.options.fresh_for, channel).await.ok()?)?;
            // The template may have been approved again since the templates were fetched.
            reason_in(self.get(self.options.refetch_pause, channel).await.ok()?)
        }
        .boxed_local()
    }
}

/// The account and business account whose templates a phone channel may send; `None` when it is not connected to an
/// account.
fn account_of(channel: &ChannelRow) -> Option<(Account, Option<String>)> {
    let business_account = channel.settings().ok()?.business_account_id;
    Some((Account::of(channel)?, business_account))
}

async fn fetch(graph: &Graph, (account, business_account): &(Account, Option<String>)) -> Option<(TemplateList, u64)> {
    let request = graph.templates(account, business_account.as_deref());
    let (rows, is_complete) = match tokio::time::timeout(FETCH_TIME_MAX, request).await {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(error)) => {
            tracing::warn!(channel.id = %account.channel, %error, "could not fetch a channel's templates");
            return None;
        }
        Err(_) => {
            tracing::warn!(channel.id = %account.channel, "fetching a channel's templates timed out");
            return None;
        }
    };
    let bytes: usize = rows.iter().map(|row| row.to_string().len()).sum();
    // A template without a name or language cannot be sent anyway.
    let templates = rows.iter().filter_map(|row| Template::deserialize(row).ok()).collect();
    Some((TemplateList { templates, is_complete }, bytes as u64))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use hotline_persistence::tables::channels::Secret;

    use super::*;
    use crate::outbound::OutboundOptions;
    use crate::providers::ProviderOptions;
    use crate::providers::graph::TEMPLATES_BYTES_MAX;

    const COMPANY: CompanyId = CompanyId::new(1);

    fn empty_cache() -> Templates {
        let graph = Graph::new(&ProviderOptions::default(), &OutboundOptions::default()).expect("a client");
        Templates::new(graph, Options::default())
    }

    /// The templates of a channel, as if they had this size.
    fn cached_templates(channel: ChannelId, bytes: u64) -> CachedTemplates {
        let account = Account {
            company: COMPANY,
            channel,
            kind: ChannelType::Whatsapp,
            id: "1".to_owned(),
            access_token: Secret("token".to_owned()),
            provider_url: None,
            is_url_from_operator: false,
        };
        let list = TemplateList { templates: Arc::new([]), is_complete: true };
        CachedTemplates { account: (account, None), fetched_at: Instant::now(), list, bytes }
    }

    #[test]
    fn templates_that_are_dropped_during_their_fetch_are_not_cached() {
        const ROUNDS: usize = 2000;
        let (templates, channel) = (empty_cache(), ChannelId::new(1));
        let key = (COMPANY, channel);
        templates.insert(key, cached_templates(channel, 1), templates.version(COMPANY));
        assert!(templates.cache.get(&key).is_some());
        for round in 0..ROUNDS {
            let (version, start) = (templates.version(COMPANY), Barrier::new(2));
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    templates.insert(key, cached_templates(channel, 1), version);
                });
                start.wait();
                templates.forget(COMPANY);
            });
            assert!(templates.cache.get(&key).is_none(), "in round {round}");
        }
    }

    #[test]
    fn the_largest_list_that_is_fetched_is_cached() {
        let templates = empty_cache();
        for channel in (1..=100).map(ChannelId::new) {
            let key = (COMPANY, channel);
            let largest = cached_templates(channel, TEMPLATES_BYTES_MAX as u64);
            templates.insert(key, largest, templates.version(COMPANY));
            assert!(templates.cache.get(&key).is_some(), "the list of channel {channel} is not cached");
        }
    }
}
