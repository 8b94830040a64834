let quick = false;

/** Whether suites are only tried out. */
export function isQuick() {
  return quick;
}

export function setQuick(value) {
  quick = value;
}
