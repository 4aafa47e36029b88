//! Tests of costs that are learned from computed intervals with noise.

use super::*;
use fastrand::Rng;

/// The true values of a server: idle share, share of its CPU per forwarded packet per second, α, β.
#[derive(Clone, Copy)]
struct Truth {
    idle: f64,
    forward: f64,
    alpha: f64,
    beta: f64,
}

const TRUTH: Truth = Truth { idle: 0.15, forward: 4e-5, alpha: 1.2, beta: 0.3 };

impl Truth {
    fn busy(&self, work: Work) -> f64 {
        let Work { forwarded, local, mirrored, imported, is_disturbed } = work;
        let sampling = self.alpha * (local + imported) + self.beta * (mirrored + imported);
        let enacting = if is_disturbed { 0.15 } else { 0.0 };
        self.idle + self.forward * (forwarded + sampling) + enacting
    }
}

/// Noise that is the same in every run: the sum of four draws, with this standard deviation.
struct Noise(Rng, f64);

fn noise(seed: u64) -> Noise {
    Noise(Rng::with_seed(seed), 0.02)
}

impl Noise {
    fn draw(&mut self) -> f64 {
        let sum: f64 = (0..4).map(|_| self.0.f64() - 0.5).sum();
        sum * 3.0_f64.sqrt() * self.1
    }
}

fn work(forwarded: f64, local: f64, mirrored: f64, imported: f64) -> Work {
    Work { forwarded, local, mirrored, imported, is_disturbed: false }
}

/// Feeds the intervals of `course`, `times` times.
fn feed(model: &mut CostModel, truth: Truth, course: &[Work], times: usize, noise: &mut Noise) {
    for at in course.iter().cycle().take(course.len() * times) {
        model.handle(*at, (truth.busy(*at) + noise.draw()).max(0.0));
    }
}

/// Loads and plans from which every coefficient can be estimated.
fn varied() -> Vec<Work> {
    vec![
        work(9000.0, 0.0, 0.0, 0.0),
        work(9000.0, 3000.0, 0.0, 0.0),
        work(4000.0, 1000.0, 5000.0, 0.0),
        work(2000.0, 2000.0, 0.0, 6000.0),
        work(8000.0, 500.0, 4000.0, 0.0),
        work(3000.0, 3000.0, 0.0, 1000.0),
    ]
}

#[test]
fn costs_are_learned_from_any_initial_assumption() {
    for (alpha, beta) in [(1.2, 0.3), (6.0, 1.5), (0.24, 0.06), (1.54, 0.0), (0.01, 3.0)] {
        for seed in [1, 77, 4242] {
            let mut model = CostModel::new(Costs { alpha, beta });
            feed(&mut model, TRUTH, &varied(), 40, &mut noise(seed));
            let Costs { alpha: found, beta: mirror } = model.in_use();
            let what = format!("from {alpha} {beta}, {seed}: {found} {mirror}");
            // The estimate may differ from the truth by the margin.
            assert!((found - 1.2).abs() < 0.25, "{what}");
            assert!((mirror - 0.3).abs() < 0.12, "{what}");
            let capacity = model.capacity(0.8).unwrap();
            assert!((capacity / 16250.0 - 1.0).abs() < 0.08, "{what}: {capacity}");
        }
    }
}

#[test]
fn cost_intervals_contain_the_true_costs_in_most_runs() {
    let (mut inside, mut all) = (0, 0);
    for seed in 1..=200 {
        let mut model = CostModel::new(Costs { alpha: 2.0, beta: 0.5 });
        feed(&mut model, TRUTH, &varied(), 20, &mut noise(seed * 7919));
        let [alpha, beta] = model.estimates().unwrap();
        for (estimate, truth) in [(alpha, 1.2), (beta, 0.3)] {
            inside += u32::from((estimate.value - truth).abs() <= estimate.half);
            all += 1;
        }
    }
    let share = f64::from(inside) / f64::from(all);
    assert!(share > 0.88, "{share}");
}

#[test]
fn costs_that_data_do_not_determine_keep_the_initial_assumption() {
    let believed = Costs { alpha: 6.0, beta: 1.5 };
    // Data about forwarding alone say nothing about α and β. Data about local sampling alone say nothing about β.
    let mut model = CostModel::new(believed);
    let forwarding = [work(9000.0, 0.0, 0.0, 0.0), work(4000.0, 0.0, 0.0, 0.0)];
    feed(&mut model, TRUTH, &forwarding, 500, &mut noise(5));
    assert_eq!(model.in_use(), believed);
    let [alpha, _] = model.estimates().unwrap();
    assert!(alpha.half > 1.0, "{alpha:?}");
    let sampling = [work(9000.0, 2000.0, 0.0, 0.0), work(9000.0, 0.0, 0.0, 0.0)];
    feed(&mut model, TRUTH, &sampling, 500, &mut noise(6));
    assert!((model.in_use().alpha - 1.2).abs() < 0.25, "{:?}", model.in_use());
    // About β the model knows only the initial assumption: about a quarter of α.
    let ([alpha, beta], in_use) = (model.estimates().unwrap(), model.in_use());
    assert!((beta.value / alpha.value - 0.25).abs() < 0.05, "{alpha:?} {beta:?}");
    assert!(beta.half > 3.0 * alpha.half && in_use.beta > 0.5, "{alpha:?} {beta:?} {in_use:?}");
}

#[test]
fn a_constant_load_for_hours_does_not_change_learned_costs() {
    let mut model = CostModel::new(Costs { alpha: 6.0, beta: 1.5 });
    feed(&mut model, TRUTH, &varied(), 40, &mut noise(3));
    let (costs, before) = (model.in_use(), model.capacity(0.8).unwrap());
    feed(&mut model, TRUTH, &[work(9000.0, 2500.0, 1000.0, 0.0)], 20_000, &mut noise(4));
    assert!((model.in_use().alpha - costs.alpha).abs() < 0.3, "{:?}", model.in_use());
    assert!((model.in_use().beta - costs.beta).abs() < 0.15, "{:?}", model.in_use());
    assert!((model.capacity(0.8).unwrap() / before - 1.0).abs() < 0.05);
    for one in model.estimates().unwrap() {
        assert!(one.half.is_finite() && one.half > 0.0, "{one:?}");
    }
}

#[test]
fn a_server_with_constant_load_is_filled_and_not_overloaded() {
    // The model then does not know which part of the CPU use is idle use and which part is forwarding. The model knows
    // the CPU use of sampling. Every ten intervals the server samples as much as the model expects to fit, as with
    // plans.
    for (alpha, beta) in [(1.2, 0.3), (6.0, 1.5), (0.24, 0.06), (1.54, 0.46)] {
        for seed in [9, 99, 999, 9999] {
            let what = format!("from {alpha}, {seed}");
            let mut model = CostModel::new(Costs { alpha, beta });
            let mut noise = noise(seed);
            feed(&mut model, TRUTH, &[work(9000.0, 0.0, 0.0, 0.0)], 2, &mut noise);
            let mut local = 0.0;
            for plan in 0..30 {
                let room = (model.capacity(0.8).unwrap() - 9000.0).max(0.0);
                local = (room / model.in_use().alpha).min(9000.0);
                let now = work(9000.0, local, 0.0, 0.0);
                for interval in 0..10 {
                    let now = Work { is_disturbed: interval == 0, ..now };
                    let busy = TRUTH.busy(now) + noise.draw();
                    // If the CPU is full, the server processes less.
                    let done = if busy > 1.0 { local * 0.5 } else { local };
                    model.handle(Work { local: done, ..now }, busy.min(1.0));
                }
                let busy = TRUTH.busy(now);
                assert!(plan < 3 || busy < 0.85, "{what}: plan {plan} fills to {busy}");
            }
            let busy = TRUTH.busy(work(9000.0, local, 0.0, 0.0));
            assert!((0.72..0.84).contains(&busy), "{what}: {busy}");
        }
    }
}

#[test]
fn an_increase_of_sampling_costs_is_learned() {
    let mut model = CostModel::new(Costs { alpha: 1.2, beta: 0.3 });
    feed(&mut model, TRUTH, &varied(), 40, &mut noise(11));
    let dearer = Truth { alpha: 3.0, ..TRUTH };
    feed(&mut model, dearer, &varied(), 80, &mut noise(12));
    assert!((model.in_use().alpha - 3.0).abs() < 0.5, "{:?}", model.in_use());
}

#[test]
fn cpu_use_of_other_programs_is_not_learned_as_cost_after_plan_changes() {
    for seed in [5, 55, 555] {
        let mut model = CostModel::new(Costs { alpha: 1.2, beta: 0.3 });
        let mut noise = noise(seed);
        feed(&mut model, TRUTH, &[work(9000.0, 1000.0, 0.0, 0.0)], 10, &mut noise);
        // Another program starts to use the CPU at the moment when a plan with more sampling is enacted.
        let crowded = Truth { idle: TRUTH.idle + 0.1, ..TRUTH };
        for local in [2500.0, 1500.0, 2500.0, 1000.0, 2000.0, 500.0, 2500.0, 1000.0] {
            feed(&mut model, crowded, &[work(9000.0, local, 0.0, 0.0)], 10, &mut noise);
        }
        let [alpha, _] = model.estimates().unwrap();
        assert!((alpha.value - 1.2).abs() < alpha.half + 0.2, "{seed}: {alpha:?}");
        assert!((model.in_use().alpha - 1.2).abs() < 0.6, "{seed}: {:?}", model.in_use());
    }
}

#[test]
fn a_full_cpu_is_only_a_lower_bound_of_the_cost() {
    let mut model = CostModel::new(Costs { alpha: 1.2, beta: 0.3 });
    feed(&mut model, TRUTH, &varied(), 40, &mut noise(11));
    let before = model.in_use();
    // The server gets far more work than its capacity. The CPU is full, which is less CPU use than the model predicts.
    for _ in 0..200 {
        model.handle(work(9000.0, 20_000.0, 0.0, 0.0), 1.0);
    }
    assert_eq!(model.in_use(), before);
    // A full CPU is a new observation if the model predicted a free part, whatever program uses the CPU.
    let capacity = model.capacity(0.8).unwrap();
    for _ in 0..200 {
        model.handle(work(9000.0, 1000.0, 0.0, 0.0), 1.0);
    }
    assert!(model.capacity(0.8).unwrap() < 9000.0, "{:?} of {capacity}", model.capacity(0.8));
}

#[test]
fn learned_costs_stay_in_bounds_and_invalid_measurements_are_ignored() {
    let mut model = CostModel::new(Costs { alpha: 0.5, beta: 0.5 });
    for work_and_busy in [
        (work(f64::NAN, 0.0, 0.0, 0.0), 0.5),
        (work(-1.0, 0.0, 0.0, 0.0), 0.5),
        (work(1000.0, 0.0, 0.0, 0.0), f64::INFINITY),
        (work(0.0, 0.0, 0.0, 0.0), 0.2),
        (work(1000.0, 0.0, 0.0, 0.0), 0.0),
    ] {
        assert!(!model.handle(work_and_busy.0, work_and_busy.1));
        assert_eq!((model.capacity(0.8), model.estimates()), (None, None));
    }
    // Sampling seems to make a server idler.
    let odd = Truth { alpha: -2.0, beta: -2.0, ..TRUTH };
    feed(&mut model, odd, &varied(), 50, &mut noise(2));
    let Costs { alpha, beta } = model.in_use();
    assert!(Costs::new(alpha, beta).is_ok(), "{alpha} {beta}");
    assert!(model.capacity(0.8).is_none_or(f64::is_finite));
}
