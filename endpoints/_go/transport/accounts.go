package transport

import "sync"

// Accounts of all connections: each is read once, at its end, or, if still open, for the report.
// Nothing is read while requests go on. The zero value is ready.
type Accounts struct {
	lock  sync.Mutex
	open  map[*Account]struct{}
	ended totals
}

// Account of an open connection.
type Account struct {
	accounts *Accounts
	read     func() Reading
	// The connection's counts at the begin of the period, if it was open then.
	before *Reading
	once   sync.Once
}

// Enter opens the account of a connection; read returns its counters.
func (a *Accounts) Enter(read func() Reading) *Account {
	account := &Account{accounts: a, read: read}
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.open == nil {
		a.open = map[*Account]struct{}{}
	}
	a.open[account] = struct{}{}
	return account
}

// Leave reads the connection for the last time; it must be open still. Later calls do nothing.
func (c *Account) Leave() {
	c.once.Do(func() {
		reading := c.read()
		c.accounts.lock.Lock()
		defer c.accounts.lock.Unlock()
		delete(c.accounts.open, c)
		c.accounts.ended.add(c.counted(reading))
	})
}

func (c *Account) counted(reading Reading) Reading {
	if c.before == nil {
		return reading
	}
	return reading.since(*c.before)
}

// Begin begins the period of the report: earlier counts are left out.
func (a *Accounts) Begin() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.ended = totals{}
	for account := range a.open {
		reading := account.read()
		account.before = &reading
	}
}

// Report is the sum over the connections that ended in the period or are open now.
func (a *Accounts) Report() *Report {
	a.lock.Lock()
	defer a.lock.Unlock()
	sum := a.ended
	for account := range a.open {
		sum.add(account.counted(account.read()))
	}
	return sum.report()
}
