/** Metrics whose values are looked up when somebody asks. */

import { Gauge, type MetricConfiguration, type Registry } from 'prom-client';

export function addGauge(
  registry: Registry,
  name: string,
  help: string,
  value: () => number,
  aggregator: NonNullable<MetricConfiguration<string>['aggregator']> = 'sum',
): void {
  const collect = collectBy((self: Gauge) => self.set(value()));
  new Gauge({ name, help, registers: [registry], aggregator, collect });
}

/** prom-client hands a metric to its `collect` as `this`. */
export function collectBy<Self>(collect: (self: Self) => void) {
  return function (this: Self) {
    collect(this);
  };
}
