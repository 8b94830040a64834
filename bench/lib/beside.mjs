let folder;

/** Another checkout of waymark with its build, which ours is measured beside; `undefined` for none. */
export function besideFolder() {
  return folder;
}

export function setBeside(value) {
  folder = value;
}
