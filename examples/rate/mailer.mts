/** Mail goes out by a server that takes three connections at most, from all machines together. */
export class Mailer {
  /** How many connections there are, and how many there were at most. */
  readonly connections = { now: 0, most: 0 };

  /** @redisLock businessFlag=mail permits=3 */
  async send(to: string): Promise<string> {
    this.connections.now += 1;
    this.connections.most = Math.max(this.connections.most, this.connections.now);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    this.connections.now -= 1;
    return `mail to ${to}`;
  }
}
