package wirelab.net;

import com.sun.jna.LastErrorException;
import com.sun.jna.Native;
import com.sun.jna.ptr.IntByReference;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectableChannel;
import java.nio.charset.StandardCharsets;

/** Linux socket options that Java lacks (tcp(7)). */
public final class Sockets {
    private static final int IPPROTO_TCP = 6;
    private static final int TCP_INFO = 11;
    private static final int TCP_CONGESTION = 13;

    static {
        Native.register(Sockets.class, "c");
    }

    private Sockets() {
    }

    private static native int setsockopt(int socket, int level, int name, byte[] value, int length)
        throws LastErrorException;

    private static native int getsockopt(int socket, int level, int name, byte[] value, IntByReference length)
        throws LastErrorException;

    /** Sets the congestion control; false: the kernel does not have it. */
    public static boolean setCongestion(SelectableChannel channel, String name) {
        byte[] value = name.getBytes(StandardCharsets.US_ASCII);
        try {
            setsockopt(descriptor(channel), IPPROTO_TCP, TCP_CONGESTION, value, value.length);
            return true;
        } catch (LastErrorException unknown) {
            return false;
        }
    }

    public static String congestion(SelectableChannel channel) {
        byte[] value = new byte[16];
        int length = get(channel, TCP_CONGESTION, value);
        String name = new String(value, 0, length, StandardCharsets.US_ASCII);
        int end = name.indexOf('\0');
        return end < 0 ? name : name.substring(0, end);
    }

    /** `struct tcp_info`, as much of it as the kernel has. */
    public static ByteBuffer info(SelectableChannel channel) {
        byte[] value = new byte[256];
        return ByteBuffer.wrap(value, 0, get(channel, TCP_INFO, value)).order(ByteOrder.nativeOrder());
    }

    private static int get(SelectableChannel channel, int name, byte[] value) {
        IntByReference length = new IntByReference(value.length);
        getsockopt(descriptor(channel), IPPROTO_TCP, name, value, length);
        return length.getValue();
    }

    /** Its file descriptor, by a method that every channel of OpenJDK has; the command line opens its package. */
    private static int descriptor(SelectableChannel channel) {
        try {
            Method method = channel.getClass().getMethod("getFDVal");
            method.setAccessible(true);
            return (int) method.invoke(channel);
        } catch (ReflectiveOperationException | RuntimeException closed) {
            throw new IllegalStateException("asking for a socket's file descriptor: " + closed, closed);
        }
    }
}
