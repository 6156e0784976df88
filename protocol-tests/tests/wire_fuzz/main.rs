//! Throws bytes at everything that reads a request: frame, header, guard and the message crate's decoder behind the guard.
//!
//! Sound requests of every key and version, damaged ones, and rubbish. Two seconds unless `FUZZ_SECONDS` says otherwise; `FUZZ_SEED`
//! repeats a run:
//!
//! ```text
//! FUZZ_SECONDS=60 cargo test -p understudy-protocol-tests --test wire_fuzz
//! ```

mod decoders;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::catch_unwind;
use std::time::Duration;

use bytes::Bytes;
use decoders::Decoder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use understudy::wire::{frame, guard, header};

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread holds, and the most it held.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.with(|live| {
            live.set(live.get().wrapping_add(layout.size()));
            live.get()
        });
        PEAK.with(|peak| peak.set(peak.get().max(live)));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.with(|live| live.set(live.get().wrapping_sub(layout.size())));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes that were allocated at once while `work` ran, beyond those before it.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let out = work();
    (out, PEAK.get().saturating_sub(before))
}

/// What decoding a body may allocate: a little, and what its elements may take.
fn allowed(body: usize) -> usize {
    4096 + body * 256
}

/// Every key and version with a known layout, and its decoder if the crate has one.
fn everything(decoders: &[Decoder]) -> Vec<(i16, i16, Option<&Decoder>)> {
    let mut all = Vec::new();
    for api in guard::apis() {
        let decoder = decoders.iter().find(|d| d.key == api.key);
        all.extend((api.first..=api.last).map(|version| (api.key, version, decoder.filter(|d| d.versions.contains(&version)))));
    }
    all
}

/// Guard, then decoder. Returns whether the guard let it through.
fn feed(key: i16, version: i16, decoder: Option<&Decoder>, body: &[u8]) -> bool {
    let (checked, used) = peak_of(|| guard::check(key, version, body));
    assert_eq!(used, 0, "the guard allocated for key {key} v{version}");
    let (Ok(()), Some(decoder)) = (checked, decoder) else {
        return checked.is_ok();
    };
    let shared = Bytes::copy_from_slice(body);
    let (outcome, used) = peak_of(|| catch_unwind(|| (decoder.decode)(&mut shared.clone(), version)));
    match outcome {
        Ok(Ok(())) => assert!(used <= allowed(body.len()), "key {key} v{version}: {used} bytes for a body of {}: {body:02x?}", body.len()),
        Ok(Err(e)) => panic!("key {key} v{version}: the guard passed what the decoder refuses: {e}: {body:02x?}"),
        Err(_) => panic!("key {key} v{version}: the decoder panicked on {body:02x?}"),
    }
    true
}

fn damage(rng: &mut StdRng, body: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..4) {
        if body.is_empty() {
            body.push(rng.random());
        }
        let at = rng.random_range(0..body.len());
        match rng.random_range(0..6) {
            0 => body[at] = rng.random(),
            1 => body[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][rng.random_range(0..6)],
            2 => body.truncate(at),
            3 => body.insert(at, rng.random()),
            4 => drop(body.remove(at)),
            _ => {
                let lie: &[u8] =
                    [&[0x7f, 0xff, 0xff, 0xff][..], &[0xff; 10], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0x80, 0, 0, 0]][rng.random_range(0..4)];
                body.splice(at..(at + lie.len()).min(body.len()), lie.iter().copied());
            }
        }
    }
}

fn rng() -> StdRng {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("FUZZ_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

#[test]
fn nothing_that_passes_the_guard_harms_the_decoder() {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(2, |text| text.parse().expect("FUZZ_SECONDS is a number of seconds"));
    #[expect(clippy::disallowed_methods, reason = "a test's own time limit")]
    let now = std::time::Instant::now;
    let decoders = decoders::all();
    let (until, mut rng, all) = (now() + Duration::from_secs(seconds), rng(), everything(&decoders));
    let (mut sound, mut passed, mut refused) = (0u64, 0u64, 0u64);
    let mut seed = [0; 600];
    while now() < until {
        for (key, version, decoder) in &all {
            let used = rng.random_range(0..seed.len());
            rng.fill(&mut seed[..used]);
            let mut body = guard::sample::body(*key, *version, &seed[..used]).expect("a known key and version");
            assert_eq!(guard::check(*key, *version, &body), Ok(()), "key {key} v{version}: {body:02x?}");
            assert!(feed(*key, *version, *decoder, &body));
            sound += 1;
            for _ in 0..4 {
                damage(&mut rng, &mut body);
                *(if feed(*key, *version, *decoder, &body) { &mut passed } else { &mut refused }) += 1;
            }
            feed(*key, *version, *decoder, &seed[..used]);
        }
        for _ in 0..200 {
            let used = rng.random_range(0..60);
            rng.fill(&mut seed[..used]);
            let rubbish = &mut seed[..used];
            let _ = frame::size(rubbish, 100 << 20);
            if used > 4 && rng.random() {
                let (key, version, _) = all[rng.random_range(0..all.len())];
                rubbish[..2].copy_from_slice(&key.to_be_bytes());
                rubbish[2..4].copy_from_slice(&version.to_be_bytes());
            }
            if let Ok((head, body)) = header::parse(rubbish) {
                let _ = guard::check(head.key, head.version, body);
            }
        }
    }
    println!("{sound} sound bodies; of their damaged copies {passed} passed and {refused} were refused");
    assert!(sound > 200 && passed > 0 && refused > 0);
}

/// The table was made from Kafka's schemas and the crate's decoders from the same of an older version: they must agree on every byte.
#[test]
fn what_the_table_makes_decodes_and_encodes_to_the_same_bytes() {
    let (decoders, mut rng, mut seed, mut compared) = (decoders::all(), rng(), [0; 400], 0);
    for (key, version, decoder) in everything(&decoders) {
        let Some(decoder) = decoder else { continue };
        let mut same = 0;
        for _ in 0..40 {
            rng.fill(&mut seed[..]);
            let body = guard::sample::body(key, version, &seed).expect("a known key and version");
            (decoder.decode)(&mut Bytes::copy_from_slice(&body), version)
                .unwrap_or_else(|e| panic!("key {key} v{version}: {e}: {body:02x?}"));
            // The crate leaves out a tagged field at its default, so not every body comes back.
            same += u32::from((decoder.again)(&mut Bytes::copy_from_slice(&body), version).is_some_and(|again| again == body));
        }
        assert!(same > 0, "key {key} v{version}: never the same bytes");
        compared += 1;
    }
    assert!(compared > 200, "only {compared} compared");
}

/// A body as short as it can be for its elements: the guard's bound on elements is what keeps the decoder small.
#[test]
fn a_long_list_of_short_elements_is_bounded() {
    for (claimed, fits) in [(guard::FREE_ELEMENTS, true), (60_000, false)] {
        let mut body = (claimed as i32).to_be_bytes().to_vec();
        body.extend(vec![0; 2 * claimed]);
        let metadata_v1 = guard::check(3, 1, &body);
        assert_eq!(metadata_v1.is_ok(), fits, "{claimed} topics without a name");
        if fits {
            feed(3, 1, decoders::all().iter().find(|d| d.key == 3), &body);
        }
    }
}
